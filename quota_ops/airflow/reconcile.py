"""The reconcile DAG of one cluster: the eight stages, a task each."""

from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule

from quota_ops.airflow import tasks
from quota_ops.airflow.approve import PARAMS as FORM
from quota_ops.airflow.approve import Approve
from quota_ops.airflow.notify import Notify, when_red
from quota_ops.airflow.spark import SparkDiff
from quota_ops.airflow.tasks import LONGEST, one_at_a_time
from quota_ops.desired.files import dag_id
from quota_ops.desired.read import read_policy
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.guard import Guard
from quota_ops.model.text import counted
from quota_ops.report.wording import shortened

PARAMS = {
    "allow": Param(
        None,
        type=["array", "null"],
        items={"type": "string", "enum": [guard.value for guard in Guard]},
        examples=[guard.value for guard in Guard],
        title="Guards to let pass",
        description="The names that a refused plan says. Needs a reason.",
    ),
    "reason": Param(
        None,
        type=["string", "null"],
        title="Reason",
        description="Why they may pass; it is recorded.",
    ),
}
"""Null is allowed because Airflow's form asks for everything else, whatever the default."""

_PROBLEM_LENGTH = 500
"""Characters of a problem in a DAG's documentation, which Airflow keeps with every version."""

ABOUT = """\
Makes the client quotas of **{cluster}** what `{folder}` says, and reads them back.

check, describe and diff find what differs. plan judges it, validate asks the broker, whose refusal
ends the run before its first write. A plan that needs a person, as the `approval` of cluster.yaml
says, then waits in approve, under Required Actions: the question shows what would change, and what
each guard means. Rejected, or not answered in time, nothing is written.
apply writes, verify reads back from every broker.

report runs always and is red when the run did not succeed: the report itself is written then too,
its path is the last line of the log, and it says which task to look at. Clearing a task is safe at
any time: what the cluster already holds is not sent again.
{trouble}"""


def reconcile_dag(
    folder: Path, run_store: str | None, approval_timeout: timedelta, notify: Notify
) -> DAG:
    """The DAG that makes a cluster what its folder says, on the schedule of its cluster.yaml.

    A plan waits `approval_timeout` for a person. A cluster.yaml that does not parse gives the DAG
    without a schedule; its check says why.
    """
    schedule, trouble = None, ""
    try:
        schedule = read_policy(folder).schedule
    except InvalidDesiredState as invalid:
        first, *more = (shortened(str(one), _PROBLEM_LENGTH) for one in invalid.problems)
        left = len(more) + invalid.unlisted
        rest = f"\n{counted(left, 'more problem')}: see quota-ops check" if left else ""
        trouble = f"\n**Not scheduled: cluster.yaml does not parse.**\n\n```\n{first}{rest}\n```\n"
    with one_at_a_time(
        dag_id(folder),
        description=f"Makes the quotas of {folder.name} what Git says",
        doc_md=ABOUT.format(cluster=folder.name, folder=folder, trouble=trouble),
        schedule=schedule,
        longest=LONGEST + approval_timeout,
        deadline=notify.get("late"),
        tags={"quota-ops", folder.name},
        params=deepcopy(PARAMS),  # where a run is tried in one process, its values stay in them
    ) as dag:
        _chain(str(folder), run_store, approval_timeout, notify)
    return dag


def _chain(folder: str, run_store: str | None, approval_timeout: timedelta, notify: Notify) -> None:
    """The stages in a row, and a person's word before the first that writes.

    validate speaks beside a guard that refused; approve needs both. verify runs when apply was
    begun, however that ended; report in any case.
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
    red = when_red(folder, run_store, notify)
    report = tasks.report.override(trigger_rule=always, on_failure_callback=red)(folder, run_store)
    check >> describe >> diff >> plan >> validate >> approve >> apply >> verify >> report
