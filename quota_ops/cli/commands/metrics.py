"""The command `metrics`: the state of clusters for Prometheus."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quota_ops.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quota_ops.report.records.metrics import LimitSample
    from quota_ops.store.places.run_store import RunStore


@options.command("""
  quota-ops metrics                                every cluster that has runs
  quota-ops metrics --limits                       also each stored limit
  quota-ops metrics demo payments --out /var/lib/node_exporter/textfile/quota_ops.prom""")
@click.argument("clusters", metavar="[CLUSTER]...", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Replace this file atomically, instead of printing. Its name must end in .prom.",
)
@click.option(
    "--limits",
    "with_limits",
    is_flag=True,
    help="Add quota_ops_limit: each stored limit, with the labels of the metrics of use.",
)
@options.run_store
def metrics(
    *, clusters: tuple[str, ...], out: Path | None, with_limits: bool, run_store: str | None
) -> None:
    """Write the state of clusters as metrics for Prometheus.

    The file is for the textfile collector of the node exporter. Reads only the run store: the
    newest report of a run that compared each cluster with Git, or tried to. If that run failed, if
    a later one died while it wrote, or if there is none, quota_ops_cluster_compared is 0, and no
    counts and no limits are written for the cluster. A run that was killed before it wrote leaves
    no report.
    """
    from prometheus_client import write_to_textfile

    from quota_ops.model.errors import InvalidInput
    from quota_ops.report.records.metrics import build_registry, format_metrics
    from quota_ops.runs.cluster_states import read_cluster_states
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.run.newest_reports import list_clusters

    if out is not None and out.suffix != ".prom":
        raise InvalidInput(
            f"--out {out} does not end in .prom",
            "The textfile collector ignores other files: write, for example, quota_ops.prom.",
        )
    store = find_run_store(run_store)
    named = clusters or list_clusters(store)
    if not named:  # a file without clusters would silence every alert
        raise InvalidInput(
            f"the run store {store.root} has no runs",
            "Set --run-store or QUOTA_OPS_RUN_STORE to the run store that all runs use.",
        )
    states = read_cluster_states(store, named)
    compared = [state.cluster for state in states if with_limits and state.counts is not None]
    limits = [limit for name in compared for limit in _read_limits(store, name)]
    if out is None:
        click.echo(format_metrics(states, limits), nl=False)
        return
    try:
        write_to_textfile(str(out), build_registry(states, limits))
    except OSError as error:
        raise InvalidInput(
            f"--out {out} cannot be written: {error.strerror}",
            "Pass a file in a folder that you may write to; its old content is unchanged.",
        ) from error


def _read_limits(store: "RunStore", cluster: str) -> "Iterator[LimitSample]":
    """Yield the limits of a cluster that the last look or a write since then found.

    Their labels are those of the last run that compared the cluster: a plan may have others.
    """
    from datetime import UTC, datetime

    from quota_ops.report.records.metrics import label_limits
    from quota_ops.runs.past_quotas import read_past_quotas
    from quota_ops.store.places.run_store import safe_name
    from quota_ops.store.run.files import POLICY
    from quota_ops.store.run.folder import RunFolder
    from quota_ops.store.run.names import find_cluster, find_id
    from quota_ops.store.run.newest_reports import read_newest_reports

    found = find_cluster(store, cluster)
    cluster_id = find_id(store, found)
    if cluster_id is None:
        return
    name = found.names[0]
    past = read_past_quotas(store, name, cluster_id, datetime.now(UTC))
    report = read_newest_reports(store, [name], cluster_id=cluster_id)[name]
    if past.looks and report:
        policy = RunFolder(store.runs_of(name) / safe_name(report["run"])).find(POLICY)
        usage = policy.usage if policy else None
        stored = past.looks[-1].stored.items()
        rows = ((entity, key, value) for key, limits in stored for entity, value in limits.items())
        yield from label_limits(cluster, usage, rows, past.owners)
