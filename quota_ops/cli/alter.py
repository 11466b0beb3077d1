"""The command for a one-off change."""

from pathlib import Path

import click

from quota_ops.cli import options, specification


@click.command(
    epilog="""\b
Examples:
  quota-ops alter demo --names user=alice --add "consumer_byte_rate=20 MiB" --reason INC-31
  quota-ops alter demo --names client-id=app --defaults user --delete producer_byte_rate
  quota-ops alter demo --names user=replicator --add producer_byte_rate=unlimited
  quota-ops alter demo --from changes.jsonl --validate-only"""
)
@options.cluster_argument
@specification.names
@specification.defaults
@click.option(
    "--add", multiple=True, metavar="KEY=VALUE[,…]", help="Set a key: a number, 10 MiB, unlimited."
)
@click.option("--delete", multiple=True, metavar="KEY[,…]", help="Clear a key.")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Many at once: a line for each key, as in a snapshot; a null value clears.",
)
@click.option("--validate-only", is_flag=True, help="Only ask the broker; write nothing.")
@click.option(
    "--allow",
    multiple=True,
    metavar="GUARD",
    type=click.Choice(["raise", "small_limit"]),
    help="Override a guard: raise, small_limit; may be repeated. Needs --reason.",
)
@options.reason("Why; it is recorded.")
@options.by
@options.desired_state
@options.commit
@options.connection
@options.run_store
@options.output_format
def alter(
    *,
    cluster: str,
    names: tuple[str, ...],
    defaults: tuple[str, ...],
    add: tuple[str, ...],
    delete: tuple[str, ...],
    source: Path | None,
    validate_only: bool,
    allow: tuple[str, ...],
    reason: str | None,
    by: str,
    desired_state: Path,
    commit: str | None,
    connection_file: Path | None,
    run_store: str | None,
    output: str,
) -> None:
    """Change quotas once, without Git. Says when Git will set it back.

    The broker validates all of it before any of it is sent. Entities under `protect` are refused;
    a run folder keeps what was asked and what became of each entity.
    """
    from quota_ops.cli.altering import alter_cluster
    from quota_ops.desired.read import read_policy
    from quota_ops.model.alteration import Alteration, parse_changes, read_changes
    from quota_ops.model.errors import InvalidInput
    from quota_ops.model.snapshot import read_header
    from quota_ops.model.specification import parse_entity
    from quota_ops.store.snapshot import read_lines

    cluster_folder = options.find_cluster(cluster, desired_state)
    if source is None:
        asked: tuple[Alteration, ...] = (
            Alteration(parse_entity(names, defaults), parse_changes(add, delete)),
        )
    elif names or defaults or add or delete:
        raise InvalidInput("--from says who and what", "Leave out --names, --add and the others.")
    else:
        lines = read_lines(source)
        asked = read_changes(lines, str(source))
        header = read_header(lines, str(source))
        header.require_cluster(read_policy(cluster_folder).cluster_id, str(source))
    alter_cluster(
        cluster_folder,
        asked,
        commit=commit,
        by=by,
        reason=reason or "",
        allow=tuple(options.allowed(allow, reason, "alter")),
        connection_file=connection_file,
        run_store=run_store,
        output=output,
        validate_only=validate_only,
    )
