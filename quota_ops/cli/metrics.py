"""The command `metrics`: the state of clusters for Prometheus."""

from pathlib import Path

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops metrics                                every cluster that has runs
  quota-ops metrics demo payments --out /var/lib/node_exporter/textfile/quota_ops.prom"""
)
@click.argument("clusters", metavar="[CLUSTER]...", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Replace this file atomically, instead of printing. Its name must end in .prom.",
)
@options.run_store
def metrics(clusters: tuple[str, ...], out: Path | None, run_store: str | None) -> None:
    """Write the state of clusters as metrics for Prometheus.

    The file is for the textfile collector of the node exporter. Reads only the run store: the
    newest run of each cluster that compared it with Git, or tried to. If that run failed, if a
    later one died while it wrote, or if there is none, quota_ops_cluster_compared is 0, and no
    counts are written for the cluster.
    """
    from prometheus_client import write_to_textfile

    from quota_ops.model.errors import InvalidInput
    from quota_ops.report.metrics import build_registry, format_metrics
    from quota_ops.runs.cluster_states import read_cluster_states
    from quota_ops.store.newest_reports import list_clusters
    from quota_ops.store.run_store import find_run_store

    if out is not None and out.suffix != ".prom":
        raise InvalidInput(
            f"--out {out} does not end in .prom",
            "The textfile collector ignores other files: name it, for example, quota_ops.prom.",
        )
    store = find_run_store(run_store)
    named = clusters or list_clusters(store)
    if not named:  # a file without clusters would silence every alert
        raise InvalidInput(
            f"the run store {store.root} has no runs",
            "Set --run-store or QUOTA_OPS_RUN_STORE to the run store that all runs use.",
        )
    states = read_cluster_states(store, named)
    if out is None:
        click.echo(format_metrics(states), nl=False)
        return
    try:
        write_to_textfile(str(out), build_registry(states))
    except OSError as error:
        raise InvalidInput(
            f"--out {out} cannot be written: {error.strerror}",
            "Name a file in a folder that you may write; its old content is unchanged.",
        ) from error
