"""The command `effects`: show what a plan does to the limits of the clients of an inventory."""

import json
from collections.abc import Iterator
from heapq import nsmallest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from quota_ops.cli import options
from quota_ops.cli.console import show_result
from quota_ops.cli.stage_options import StageOptions, comparing, stage_command

if TYPE_CHECKING:
    from quota_ops.model.plans.client_effects import ClientEffectRow, InventoryEffects
    from quota_ops.sql.inventory import Inventory
    from quota_ops.store.run.folder import RunFolder

MOST = 200
"""Rows that a screen lists, those that lose first; the other formats have them all."""


@stage_command(
    comparing,
    options.actual,
    options.detailed_exitcode,
    options.out,
    click.option(
        "--inventory",
        type=click.Path(path_type=Path, exists=True),
        help="The clients: a .csv, .jsonl or .parquet file, or a folder of them.  "
        "[default: that of cluster.yaml]",
    ),
    click.option(
        "--all",
        "every_limit",
        is_flag=True,
        help="Also list the limits that stay: every client with every key.",
    ),
    run=options.on_run("Show the effects of its plan"),
    has_body=True,
    examples="""
  quota-ops effects demo
  quota-ops effects demo --inventory clients.csv
  quota-ops effects --run RUN --format json
  quota-ops effects demo --actual snapshot.jsonl    without the cluster
  quota-ops effects demo --all --format csv         the limits of every client""",
)
def effects(*, every_limit: bool, **typed: Any) -> None:
    """Show which clients a plan would limit, cut or raise.

    The clients come from an inventory. A line is one client and one quota key whose limit changes,
    or with --all any limit: the limit before and after, the quota that it comes from and, with
    observed rates, what the clients that share the limit use. Writes nothing to the cluster or to
    the run store; --out keeps the run.
    """
    from quota_ops.cli.stage_run import DIFFERENCES_EXIST, run_to_plan
    from quota_ops.sql.inventory import find_inventory
    from quota_ops.store.places.run_store import open_place

    given: Path | None = typed.pop("inventory")
    inventory = None if given is None else find_inventory(open_place(given))
    chosen = StageOptions(**typed)
    is_kept = chosen.run_folder is not None or chosen.out is not None
    with TemporaryDirectory(prefix="quota-ops-") as scratch:
        if not is_kept:
            chosen = replace(chosen, out=str(Path(scratch) / "run"))
        folder = run_to_plan(chosen)
        found, rows = _find(folder, inventory, Path(scratch), every_limit=every_limit)
        if not is_kept:
            found = replace(found, attempt=None, computed_from=None)
        _show(folder, found, rows, chosen.output, is_kept=is_kept, every_limit=every_limit)
        _show_warnings(folder)
    if chosen.detailed_exitcode and found.total.keys:
        raise click.exceptions.Exit(DIFFERENCES_EXIST)


def _find(
    folder: "RunFolder", inventory: "Inventory | None", scratch: Path, *, every_limit: bool
) -> "tuple[InventoryEffects, Iterator[ClientEffectRow]]":
    """Return the effects that the run has, or else compute them; the rows are read on demand."""
    from quota_ops.sql import client_effects as stored
    from quota_ops.sql import text
    from quota_ops.sql.embedded_effects import EmbeddedEffects
    from quota_ops.store.places.run_store import open_place
    from quota_ops.store.run.files import CLIENT_COUNTS

    if inventory is None and not every_limit and (kept := folder.find(CLIENT_COUNTS)):
        return kept, stored.read_effect_rows(folder, kept)
    to = open_place(scratch) / "client_effects"
    engine = EmbeddedEffects(text.EVERY if every_limit else text.CHANGED)
    found = stored.find_client_effects(engine, folder, to, inventory)
    return found, stored.read_rows_below(to)


def _show_warnings(folder: "RunFolder") -> None:
    """Show on stderr why other limits may apply to the clients, if that is known."""
    from quota_ops.model.quotas.tables import ACTUAL
    from quota_ops.report.outline.effects import describe_foreign_rows
    from quota_ops.report.outline.sentences import describe_callback
    from quota_ops.store.run.files import FACTS

    stored = ((row.entity, row.key) for row in folder.read_rows(ACTUAL))
    for warning in filter(
        None, (describe_callback(folder.find(FACTS)), describe_foreign_rows(stored))
    ):
        click.echo(warning, err=True)


def _show(
    folder: "RunFolder",
    found: "InventoryEffects",
    rows: "Iterator[ClientEffectRow]",
    output: str,
    *,
    is_kept: bool,
    every_limit: bool,
) -> None:
    from quota_ops.model.plans.client_effects import CLIENT_EFFECTS, InventoryEffects
    from quota_ops.model.plans.plan import SHORT
    from quota_ops.model.stored import to_json
    from quota_ops.report.outline.effects import client_effects_screen, rank_by_loss
    from quota_ops.store.run.files import PLAN

    plan, digest = folder.plan(), folder.read(PLAN).digest
    heading = f"{plan.policy.cluster} ({plan.policy.cluster_id})      plan {digest[:SHORT]}"
    clients = (dict(zip(CLIENT_EFFECTS.names, row, strict=True)) for row in rows)

    def as_json() -> "Iterator[str]":
        head = {
            "run": str(folder.place) if is_kept else None,
            "plan": digest,
            **to_json(InventoryEffects, found),
            "total": found.total._asdict(),
        }
        yield f'{json.dumps(head)[:-1]}, "clients": ['
        for number, client in enumerate(clients):
            yield f"{',' if number else ''}\n{json.dumps(client)}"
        yield "]}\n"

    show_result(
        output,
        text=lambda: client_effects_screen(
            heading, nsmallest(MOST, rows, key=rank_by_loss), found, every_limit=every_limit
        ),
        json=as_json,
        rows=lambda: clients,
    )
