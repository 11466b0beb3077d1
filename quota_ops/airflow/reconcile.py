"""The reconcile DAG of one cluster: the eight stages and the approval, a task each."""

from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule

from quota_ops.airflow import tasks
from quota_ops.airflow.approve import PARAMS as FORM
from quota_ops.airflow.approve import Approve
from quota_ops.airflow.notify import Notify, make_failure_callback
from quota_ops.airflow.spark import SparkDiff
from quota_ops.airflow.tasks import LONGEST, build_dag
from quota_ops.desired.files import dag_id
from quota_ops.desired.read import read_policy
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.guard import Guard
from quota_ops.model.text import counted
from quota_ops.report.formats import shortened

PARAMS = {
    "allow": Param(
        None,
        type=["array", "null"],
        items={"type": "string", "enum": [guard.value for guard in Guard]},
        examples=[guard.value for guard in Guard],
        title="Guards to override",
        description="The guards that block the plan. Needs a reason.",
    ),
    "reason": Param(
        None,
        type=["string", "null"],
        title="Reason",
        description="Why you override them. It is recorded.",
    ),
}
"""Null is allowed because Airflow's form requires a value of every other param, default or not."""

_PROBLEM_LENGTH = 500
"""The most characters of a problem in a DAG's documentation; Airflow stores it per version."""

ABOUT = """\
Makes the client quotas of **{cluster}** match `{folder}`, and verifies them.

check, describe and diff find the differences, and plan applies the guards. validate has the broker
check every change; if it rejects one, the run ends before its first write. A plan that needs
approval, as `approval` in cluster.yaml defines, then waits in approve, under Required Actions: the
form shows the changes, and what each guard means. If it is rejected, or nobody decides in time,
nothing is written. apply writes the changes, and verify reads them back from every broker.

report always runs. It writes the report, logs its path as the last line, and fails if an earlier
task failed: its log names the task to look at. You can clear a task at any time: a change that the
cluster already stores is not sent again.
{trouble}"""


def build_reconcile_dag(
    folder: Path, run_store: str | None, approval_timeout: timedelta, notify: Notify
) -> DAG:
    """Build the DAG that makes a cluster match its folder, on the schedule of its cluster.yaml.

    A plan waits `approval_timeout` for a decision. If cluster.yaml is invalid, the DAG has no
    schedule, and its task check shows why.
    """
    schedule, trouble = None, ""
    try:
        schedule = read_policy(folder).schedule
    except InvalidDesiredState as invalid:
        first, *more = (shortened(str(one), _PROBLEM_LENGTH) for one in invalid.problems)
        left = len(more) + invalid.unlisted
        rest = f"\n{counted(left, 'more problem')}: run quota-ops check" if left else ""
        trouble = (
            f"\n**Not scheduled, because cluster.yaml is invalid.**\n\n```\n{first}{rest}\n```\n"
        )
    with build_dag(
        dag_id(folder),
        description=f"Makes the client quotas of {folder.name} match Git",
        doc_md=ABOUT.format(cluster=folder.name, folder=folder, trouble=trouble),
        schedule=schedule,
        longest=LONGEST + approval_timeout,
        deadline=notify.get("late"),
        tags={"quota-ops", folder.name},
        params=deepcopy(PARAMS),  # a run that is tested in one process leaves its values in them
    ) as dag:
        _add_tasks(str(folder), run_store, approval_timeout, notify)
    return dag


def _add_tasks(
    folder: str, run_store: str | None, approval_timeout: timedelta, notify: Notify
) -> None:
    """Add the stages in order, with the approval before the first that writes.

    validate runs even if a guard blocked the plan; approve needs both. verify runs if apply has
    begun, however it ended; report always runs.
    """
    begun, always = TriggerRule.ONE_DONE, TriggerRule.ALL_DONE
    check, describe = tasks.check(folder, run_store), tasks.describe(folder, run_store)
    diff = SparkDiff(task_id="diff", cluster_folders=[folder], run_store=run_store)
    plan: Any = tasks.plan(folder, run_store)
    validate = tasks.validate.override(trigger_rule=begun)(folder, run_store)
    approve = Approve(
        task_id="approve",
        cluster_folder=folder,
        run_store=run_store,
        planned=plan,
        timeout=approval_timeout,
        notify=notify,
        params=FORM,
    )
    approved: Any = approve.output
    apply = tasks.apply(folder, run_store, approved=approved)
    verify = tasks.verify.override(trigger_rule=begun)(folder, run_store)
    failed = make_failure_callback(folder, run_store, notify)
    report = tasks.report.override(trigger_rule=always, on_failure_callback=failed)(
        folder, run_store
    )
    check >> describe >> diff >> plan >> validate >> approve >> apply >> verify >> report
