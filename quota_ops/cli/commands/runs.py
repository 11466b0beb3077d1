"""The command that lists earlier runs."""

from typing import TYPE_CHECKING

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result, warn_empty
from quota_ops.model.errors import InvalidInput

if TYPE_CHECKING:
    from quota_ops.store.run.folder import RunFolder


@options.command("""
  quota-ops runs                        the last 20 runs of every cluster
  quota-ops runs demo --last 100
  quota-ops runs demo --format json | jq '.[0].sentence'""")
@click.argument("cluster", required=False)
@click.option(
    "--last",
    "most",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="The number of runs to list, newest first.",
)
@options.run_store
@options.table_format
def runs(cluster: str | None, most: int, run_store: str | None, output: str) -> None:
    """List the latest runs, their status and who approved them.

    CLUSTER is its name or its cluster id. Reads only the run store. The status describes the
    cluster when the run ended, as in `show`: In sync, Pending (Rejected, if the plan was; json has
    Pending), Needs attention or Unknown, and why the run ended early: `blocked by guards`, or the
    stage that failed. For a run that was cut off while it wrote, it is Running, or Interrupted
    until it is verified; for one that does not compare with Git, what it did: Rolled back,
    Altered, Adopted, Released.
    """
    from quota_ops.report.screens.runs import runs_screen
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.run.listing import list_runs
    from quota_ops.store.run.names import list_ids

    store = find_run_store(run_store)
    found, more = list_runs(store, cluster, most, _read_status)
    if not found:
        warn_empty(store)
    rows = [run.as_json() for run in found]
    known = store.list_names()
    shared = {run.cluster for run in found if len(list_ids(known, run.cluster)) > 1}
    show_result(
        output, text=lambda: runs_screen(found, more, shared), json=lambda: rows, rows=lambda: rows
    )


def _read_status(folder: "RunFolder") -> tuple[str, str, int]:
    """Return status, sentence and number of changes as the report of a run has them."""
    from quota_ops.report.outline.summary import SyncStatus, summarize
    from quota_ops.stages.report.audit import count_changed
    from quota_ops.stages.report.run_report import read_report

    try:
        report = read_report(folder)
    except InvalidInput as error:
        return SyncStatus.UNKNOWN, error.message, 0
    summary = summarize(report)
    return summary.status, summary.sentence, count_changed(report)
