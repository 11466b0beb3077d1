"""The command that writes desired state from a live cluster."""

from pathlib import Path

import click

from quota_ops.cli import options, specification
from quota_ops.cli.idle_options import refuse_idle


@click.command(
    "import",
    epilog="""\b
Examples:
  quota-ops import demo
  quota-ops import demo --group-by prefix --into ./imported/demo
  quota-ops import demo --actual snapshot.jsonl --owner platform

\b
Then:
  quota-ops plan demo        has nothing to write
  quota-ops reconcile demo   reads all of it back; from then on it is this repository's""",
)
@options.cluster_argument
@refuse_idle("--connection", "A snapshot is read, no cluster.", beside=("--actual",))
@click.option(
    "--group-by",
    type=click.Choice(["type", "user", "prefix", "one"]),
    default="type",
    show_default=True,
    help="A file for each type of entity, each user, each first word of a name, or one for all.",
)
@click.option(
    "--owner", help="The owner in every file.  [default: the user or word, else unassigned]"
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write.  [default: the cluster's own, under --desired-state]",
)
@specification.actual
@options.desired_state
@options.connection
def import_(
    *,
    cluster: str,
    group_by: str,
    owner: str | None,
    into: Path | None,
    actual: Path | None,
    desired_state: Path,
    connection_file: Path | None,
) -> None:
    """Write desired state from what a cluster holds.

    Needs no cluster.yaml: without one it writes it, and CLUSTER is the name of the connection. What
    YAML cannot ask for (a stored NaN, a host name as an address) goes under `protect`, with the
    reason. Writes nothing to the cluster, and over no file.
    """
    from quota_ops.cli.importing import Source, write_desired_state
    from quota_ops.desired.files import is_folder_or_link

    source = Source(
        cluster=cluster,
        folder=desired_state / cluster if is_folder_or_link(desired_state / cluster) else None,
        actual=actual,
        connection_file=connection_file,
    )
    if source.folder is None and is_folder_or_link(Path(cluster)):
        source = source.at(Path(cluster))
    write_desired_state(source, into or source.folder or desired_state / cluster, group_by, owner)
