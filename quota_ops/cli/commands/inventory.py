"""The command `inventory`: write the clients that a cluster knows, as a first inventory."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path

import click

from quota_ops.cli import options
from quota_ops.cli.console import warn_of_formulas
from quota_ops.cli.idle_options import refuse_idle
from quota_ops.model.quotas.entity import CLIENT_ID, USER

_COLUMNS = (USER, CLIENT_ID)


@click.command(
    epilog="""\b
Examples:
  quota-ops inventory demo
  quota-ops inventory demo --out desired_state/demo/clients.csv
  quota-ops inventory demo --rates --out clients.jsonl"""
)
@options.cluster_argument
@options.desired_state
@options.connection
@click.option(
    "--out",
    "destination",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the clients to this new .csv or .jsonl file.",
)
@click.option(
    "--rates",
    is_flag=True,
    help="Add the p95 of each client on the days of the last 30 that `record` stored.",
)
@options.run_store
@refuse_idle("--run-store", "Only --rates reads a run store.", without=("--rates",))
def inventory(
    *,
    cluster: str,
    desired_state: Path,
    connection_file: Path | None,
    destination: Path | None,
    rates: bool,
    run_store: str | None,
) -> None:
    """Write the clients that a cluster knows, as a first inventory.

    They are its SCRAM users, the principals of its ACLs, and the members of its consumer groups.
    The cluster shows users without client ids, and members without users: what it does not show is
    <unknown>. A source that you are not authorized to read is skipped, and listed on stderr.
    Read-only.

    With --rates, also lists each client that used anything on a recorded day, with its rates on its
    busiest broker. Only clients that brokers measure by user and client id together are added.
    """
    from quota_ops.desired.read import find_cluster, read_policy
    from quota_ops.kafka.connection import find_connection
    from quota_ops.kafka.inventory import NO_AUTHORIZER, read_clients
    from quota_ops.kafka.preflight import preflight
    from quota_ops.model.errors import InvalidInput, NotAuthorized
    from quota_ops.report.outline.formats import escape_text

    if destination is not None and destination.suffix not in _WRITERS:
        raise InvalidInput(
            f"--out {destination} is neither a .csv nor a .jsonl file",
            "Pass a name with one of these endings.",
        )
    if destination is not None and destination.exists():
        raise InvalidInput(f"{destination} exists already", "Pass a new file to --out.")
    policy = read_policy(find_cluster(cluster, desired_state))
    connection = find_connection(policy.connection, file=connection_file)
    used = {}
    if rates:
        from datetime import UTC, datetime

        from quota_ops.stages.use.recorded import read_client_rates
        from quota_ops.store.places.run_store import find_run_store

        used = read_client_rates(find_run_store(run_store), policy.cluster_id, datetime.now(UTC))
    sources = read_clients(connection, preflight(connection, policy.cluster_id, policy.verify))
    for source in sources:
        if source.skipped is not None:
            click.echo(escape_text(f"skipped the {source.name}: {source.skipped}"), err=True)
    clients = sorted({*used}.union(*(source.clients for source in sources)))
    if not clients:
        empty = " and no ".join(source.name for source in sources if source.skipped is None)
        is_refused = any(source.skipped not in {None, NO_AUTHORIZER} for source in sources)
        raise (NotAuthorized if is_refused else InvalidInput)(
            f"cluster {policy.cluster} shows no client" + (f": it has no {empty}" if empty else ""),
            "Nothing was written. Write the inventory by hand, or export the clients from where "
            "they are registered.",
        )
    suffix = ".csv" if destination is None else destination.suffix
    keys = sorted({key for own in used.values() for key in own})
    rows = [
        {USER: user, CLIENT_ID: client_id}
        | {key: f"{value:.6g}" for key, value in used.get((user, client_id), {}).items()}
        for user, client_id in clients
    ]
    text = _WRITERS[suffix]((*_COLUMNS, *keys), rows)
    if destination is None:
        click.echo(text, nl=False)
    else:
        try:
            with destination.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise InvalidInput(f"{destination} cannot be written: {error.strerror}") from error
        click.echo(f"{destination}: {len(clients):,} clients", err=True)
    if suffix == ".csv":
        warn_of_formulas(name for client in clients for name in client)


def _as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    text = StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _as_json_lines(_columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


_WRITERS = {".csv": _as_csv, ".jsonl": _as_json_lines}
