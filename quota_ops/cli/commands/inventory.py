"""The command `inventory`: write the clients that a cluster knows, as a first inventory."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import format_csv, format_json_lines, warn_of_formulas
from quota_ops.model.quotas.entity import CLIENT_ID, USER

if TYPE_CHECKING:
    from quota_ops.cli.session import Session


@options.command("""
  quota-ops inventory demo
  quota-ops inventory demo --out desired_state/demo/clients.csv
  quota-ops inventory demo --rates --out clients.jsonl""")
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
@options.on_cluster(options.connection)
@options.refuse_idle("--run-store", "Only --rates reads a run store.", without=("--rates",))
def inventory(*, session: "Session", destination: Path | None, rates: bool) -> None:
    """Write the clients that a cluster knows, as a first inventory.

    They are its SCRAM users, the principals of its ACLs, and the members of its consumer groups.
    The cluster shows users without client ids, and members without users: what it does not show is
    <unknown>. A source that you are not authorized to read is skipped, and listed on stderr.
    Read-only.

    With --rates, also lists each client that used anything on a recorded day, with its rates on its
    busiest broker. Only clients that brokers measure by user and client id together are added.
    """
    from quota_ops.kafka.inventory import NO_AUTHORIZER, read_clients
    from quota_ops.kafka.preflight import preflight
    from quota_ops.model.errors import InvalidInput, NotAuthorized
    from quota_ops.report.outline.formats import escape_text

    if destination is not None and destination.suffix not in {".csv", ".jsonl"}:
        raise InvalidInput(
            f"--out {destination} is neither a .csv nor a .jsonl file",
            "Pass a name with one of these endings.",
        )
    if destination is not None and destination.exists():
        raise InvalidInput(f"{destination} exists already", "Pass a new file to --out.")
    policy, connection = session.policy, session.find_connection()
    used = {}
    if rates:
        from datetime import UTC, datetime

        from quota_ops.stages.use.recorded import read_client_rates

        used = read_client_rates(session.store, policy.cluster_id, datetime.now(UTC))
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
    is_csv = destination is None or destination.suffix == ".csv"
    columns = (USER, CLIENT_ID, *sorted({key for own in used.values() for key in own}))
    rows = [
        {USER: user, CLIENT_ID: client_id}
        | {key: f"{value:.6g}" for key, value in used.get((user, client_id), {}).items()}
        for user, client_id in clients
    ]
    text = format_csv(rows, columns) if is_csv else "".join(format_json_lines(rows))
    if destination is None:
        click.echo(text, nl=False)
    else:
        try:
            with destination.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise InvalidInput(f"{destination} cannot be written: {error.strerror}") from error
        click.echo(f"{destination}: {len(clients):,} clients", err=True)
    if is_csv:
        warn_of_formulas(name for client in clients for name in client)
