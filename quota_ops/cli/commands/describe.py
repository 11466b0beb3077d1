"""The command `describe`: show the quotas that a cluster stores."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.filter import EntityFilter
from quota_ops.model.quotas.rows import StoredQuota

if TYPE_CHECKING:
    from quota_ops.cli.session import Session


@options.command("""
  quota-ops describe demo
  quota-ops describe demo --names user=alice --any client-id
  quota-ops describe demo --defaults user --strict --format text
  quota-ops describe demo --format jsonl > snapshot.jsonl
  quota-ops describe --actual snapshot.jsonl --names client-id=app
  quota-ops describe demo --connection ./staging.properties
  quota-ops describe --run RUN""")
@options.refuse_idle(
    "--strict",
    "Add one of them, or leave out --strict: without a filter every quota is shown.",
    without=("--names", "--defaults", "--any"),
)
@options.refuse_idle(
    "--desired-state", "Leave it out: the run already names its cluster.", beside=("--run",)
)
@options.refuse_idle(
    "--run-store", "Leave it out: only --run uses a run store.", without=("--run",)
)
@options.entities
@options.strict
@options.actual_or_cluster
@options.on_cluster(options.connection, required=False)
@options.run
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "text", "json", "jsonl", "yaml"]),
    default="table",
    show_default=True,
    help="table: with units; text: as in KIP-546; json: one array; jsonl: a snapshot for --actual, "
    "one row per line; yaml: desired state.",
)
def describe(
    *,
    session: "Session",
    flags: options.EntityFlags,
    strict: bool,
    actual: Path | None,
    run_folder: str | None,
    output: str,
) -> None:
    """Show the quotas that a cluster stores.

    Only reads from the cluster: the response of one broker, which may be of old metadata. Also
    shows types and keys that Kafka does not document.

    Without --names, --defaults and --any it lists every quota; with them, the entities that
    match all of them; --strict leaves out entities that have further types. It reads only
    cluster.yaml, for the connection and the cluster id. With --run it also stores the quotas in
    the run's folder for `diff --run`.
    """
    from quota_ops.model.quotas.snapshot import SnapshotHeader
    from quota_ops.model.quotas.specification import parse_filter
    from quota_ops.report.screens.describe import snapshot_lines
    from quota_ops.store.places.snapshot import Snapshot

    left_out: str | None = None
    if actual is None:
        parse_filter(*flags, strict=strict)  # before a cluster is queried
    if run_folder is None:
        with session.open_source(actual) as (source, place):
            stored, cluster_id = source.describe(), source.cluster_id
            left_out = source.header.filter if isinstance(source, Snapshot) else None
    elif session.cluster or actual:
        raise InvalidInput("--run selects the cluster already", "Leave out CLUSTER and --actual.")
    else:
        stored, place, cluster_id = _describe_run(session, run_folder)
    others = {kind for row in stored for kind in row.entity.types} if actual else ()
    wanted = parse_filter(*flags, strict=strict, others=others)
    rows = [row for row in stored if wanted.accepts(row.entity)]
    rows.sort(key=lambda row: (row.entity.text, row.key))
    if wanted.parts:
        left_out = f"{left_out} and {wanted.text}" if left_out else wanted.text
    if output == "jsonl":
        for text in snapshot_lines(rows, SnapshotHeader(cluster_id, left_out, len(rows))):
            click.echo(text)
    else:
        _show(rows, output, place, wanted)


def _show(rows: list[StoredQuota], output: str, place: str, wanted: EntityFilter) -> None:
    from quota_ops.model.text import counted, plural
    from quota_ops.report.outline.layout import Tone, line
    from quota_ops.report.screens import describe as quota_screens

    def as_yaml() -> str:
        from quota_ops.desired.export.quotas_text import (
            left_out_comments,
            quotas_file,
            split_writable,
        )

        writable, left_out = split_writable(rows)
        return quotas_file(writable) + left_out_comments(left_out)

    fitting = f" that {plural(len(rows), 'fits', 'fit')} {wanted.text}" if wanted.parts else ""
    total = line(f"{counted(len(rows), 'quota')}{fitting} on {place}", Tone.CONTEXT)
    show_result(
        output,
        table=lambda: (*quota_screens.table_screen(rows), total),
        text=lambda: quota_screens.kip546_screen(rows),
        json=lambda: quota_screens.stored_objects(rows),
        yaml=as_yaml,
    )


def _describe_run(session: "Session", named: str) -> tuple[tuple[StoredQuota, ...], str, str]:
    """Describe a cluster into an earlier run's folder; return the rows, its folder and the id."""
    from quota_ops.cli.stage_run import open_run, refuse_written
    from quota_ops.kafka.connection import find_connection
    from quota_ops.model.quotas.entity import Entity
    from quota_ops.model.quotas.tables import ACTUAL
    from quota_ops.runs.chain import run_stages
    from quota_ops.runs.run import Run, connect_once
    from quota_ops.store.places.parquet import to_rows
    from quota_ops.store.places.run_store import named_store, store_of
    from quota_ops.store.run.files import DESCRIBED

    folder = open_run(named, session.run_store)
    refuse_written(folder, "describe")
    store_of(folder.place, named_store(session.run_store))  # or an error: it is of another store
    with connect_once(
        folder.policy, partial(find_connection, file=session.connection_file)
    ) as connect:
        run_stages(Run(folder, Path(), connect), ("describe",))
    rows = to_rows(folder.read_table(ACTUAL), "entity", "key", "value")
    lost = ((row.entity, row.key, row.value) for row in folder.read(DESCRIBED).lost)
    stored = tuple(StoredQuota(Entity.parse(row), key, value) for row, key, value in (*rows, *lost))
    return stored, str(folder.place), folder.policy().cluster_id
