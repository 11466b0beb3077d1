"""The command `backtest`: try guards on past plans."""

from pathlib import Path

import click

from quota_ops.cli import options
from quota_ops.cli.console import refuse_incomplete, show_result


@options.command("""
  quota-ops backtest demo --policy desired_state/demo/cluster.yaml
  quota-ops backtest all --since 90d --policy /tmp/stricter/cluster.yaml""")
@options.cluster_argument
@options.since
@click.option(
    "--policy",
    "policy_file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The cluster.yaml whose guards are tried.",
)
@options.run_store
@options.table_format
def backtest(
    *, cluster: str, since: str, policy_file: Path, run_store: str | None, output: str
) -> None:
    """Show which past plans the guards of a policy would have blocked.

    Reads the history in the run store, of one cluster or of all. Consecutive plans with the same
    changes count once. Guards that need data which the history lacks are skipped, and listed at the
    end.
    """
    from quota_ops.desired.read import read_policy
    from quota_ops.model.errors import InvalidInput
    from quota_ops.model.history.backtest import count_unknown, judge_plans, list_plans
    from quota_ops.model.plans.guard import NOT_TRIED
    from quota_ops.report.screens.backtest import backtest_screen, blocked_json
    from quota_ops.sql.history import read_events
    from quota_ops.store.places.run_store import find_run_store
    from quota_ops.store.run.names import find_cluster

    if policy_file.name != "cluster.yaml":
        raise InvalidInput(
            f"--policy {policy_file} is not named cluster.yaml",
            "Copy a cluster.yaml into an empty folder, change its guards, and pass the copy.",
        )
    policy, first = read_policy(policy_file.parent), options.parse_since(since)
    store = find_run_store(run_store)
    found = read_events(store, None if cluster == "all" else find_cluster(store, cluster), first)
    if not found.rows:
        raise InvalidInput(
            f"the run store {store.root} has no history of {cluster} since {first}",
            "Look further back with --since; quota-ops runs lists the runs and their clusters.",
        )
    plans = list_plans(found.rows)
    blocked = judge_plans(plans, policy)
    without_clients, without_effects = count_unknown(plans)
    show_result(
        output,
        text=lambda: backtest_screen(plans, blocked, first, str(policy_file)),
        json=lambda: {
            "since": first,
            "plans": len(plans),
            "plans_without_clients": without_clients,
            "plans_without_effects": without_effects,
            "not_tried": list(NOT_TRIED),
            "blocked": list(map(blocked_json, blocked)),
            "not_counted": list(found.troubles),
        },
        rows=lambda: map(blocked_json, blocked),
    )
    refuse_incomplete(found.troubles, output)
