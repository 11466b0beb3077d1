"""The command that lists earlier runs."""

import click

from quota_ops.cli import options


@click.command(
    epilog="""\b
Examples:
  quota-ops runs                        the last 20 runs of every cluster
  quota-ops runs demo --last 100
  quota-ops runs demo --format json | jq '.[0].sentence'"""
)
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

    CLUSTER is its name or its cluster id. Reads only the run store. The status is that of the
    cluster when the run ended: In sync, Pending, Needs attention or Unknown. For a run without a
    report, it is how far the run got.
    """
    from quota_ops.cli.console import show_result, warn_empty
    from quota_ops.report.screens.runs import runs_screen
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.run.listing import list_runs

    store = find_run_store(run_store)
    found, more = list_runs(store, cluster, most)
    if not found:
        warn_empty(store)
    rows = [run.as_json() for run in found]
    show_result(output, text=lambda: runs_screen(found, more), json=lambda: rows, rows=lambda: rows)
