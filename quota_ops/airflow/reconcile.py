"""The reconcile DAG of one cluster: its task group, on the schedule of its cluster.yaml."""

from bisect import bisect
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param

from quota_ops.airflow.notify import Notify
from quota_ops.airflow.task_group import QuotaReconcile
from quota_ops.airflow.tasks import LONGEST, build_dag
from quota_ops.desired.files import dag_id
from quota_ops.desired.read import read_changes, read_policy
from quota_ops.desired.yaml.cron import cron_at, delay_schedule
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.guard import Guard
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import shortened


def guard_params() -> dict[str, Param]:
    """Return the params `allow` and `reason`, with which a manual run overrides guards.

    Add them to the params of a DAG that has a task group QuotaReconcile.
    """
    guards = [guard.value for guard in Guard]
    # Null is allowed because Airflow's form requires a value of every other param, default or not.
    return {
        "allow": Param(
            None,
            type=["array", "null"],
            items={"type": "string", "enum": guards},
            examples=guards,
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


_PROBLEM_LENGTH = 500
"""The most characters of a problem in a DAG's documentation; Airflow stores it per version."""

ABOUT = """\
Makes the client quotas of **{cluster}** match `{state}/{cluster}`, and verifies them.

check, describe and diff find the differences, and plan applies the guards. validate has the broker
check every change; if it rejects one, the run ends before its first write. A plan that needs
approval, as `approval` in cluster.yaml defines, then waits in approve, under Required Actions: the
form shows the changes, and what each guard means. If it is rejected, or nobody decides in time,
nothing is written. apply writes the changes, and verify reads them back from every broker.
A run that stays queued waits for the run before it, which may need approval: Quotas shows it.

report runs even if a task failed. It writes the report, logs its link as the last line, and fails
if an earlier task failed: its log names the task to look at. You can clear a task at any time: a
change that the cluster already stores is not sent again.
{trouble}"""


MOST_CHANGES = 50
"""How many coming starts and ends of temporary limits a schedule has."""
_KEPT = timedelta(days=1)
"""How long a schedule keeps a time that has passed: the scheduler may not have started its run."""


_LONGEST_TAG = 100
"""Airflow rejects a longer one, and with it every DAG of the file."""


def _list_crons(folder: Path, cron: str | None) -> list[str]:
    """Return the schedule, and each time when a temporary limit starts or ends."""
    now = datetime.now(UTC)
    changes = read_changes(folder, iso_utc(now - _KEPT))
    last = bisect(changes, iso_utc(now)) + MOST_CHANGES
    return [*dict.fromkeys(filter(None, (cron, *map(cron_at, changes[:last]))))]


def build_reconcile_dag(
    folder: Path,
    approval_timeout: timedelta,
    notify: Notify,
    default_args: Mapping[str, Any],
    *,
    prefix: str,
    jitter: timedelta,
    **group: Any,
) -> DAG:
    """Build the DAG that makes a cluster match its folder, on the schedule of its cluster.yaml.

    It also runs when a temporary limit starts or ends, so that the value changes in time.
    A plan waits `approval_timeout` for a decision. If cluster.yaml is invalid, the DAG has no
    schedule, and its task check shows why. `prefix` begins its DAG id, and `jitter` is the longest
    delay of a run behind its schedule. `group` has the other arguments of QuotaReconcile.
    """
    crons: list[str] = []
    trouble = ""
    try:
        cron = read_policy(folder).schedule
        if cron is not None:
            cron = delay_schedule(cron, folder.name, jitter)
        crons = _list_crons(folder, cron)
    except InvalidDesiredState as invalid:
        # Without the path of this checkout: it would make a new version of the DAG.
        checkout = f"{folder.parent.parent}/"
        problems = (str(problem).replace(checkout, "") for problem in invalid.problems)
        first, *more = (shortened(problem, _PROBLEM_LENGTH) for problem in problems)
        left = len(more) + invalid.unlisted
        rest = f"\n{counted(left, 'more problem')}: run quota-ops check" if left else ""
        trouble = (
            f"\n**Not scheduled, because cluster.yaml is invalid.**\n\n```\n{first}{rest}\n```\n"
        )
    with build_dag(
        prefix + dag_id(folder),
        description=f"Makes the client quotas of {folder.name} match Git",
        doc_md=ABOUT.format(cluster=folder.name, state=folder.parent.name, trouble=trouble),
        crons=crons,
        longest=LONGEST + approval_timeout,
        subject=folder.name,
        notify=notify,
        tags={"quota-ops", folder.name[:_LONGEST_TAG]},
        default_args=dict(default_args),
        params=guard_params(),
    ) as dag:
        QuotaReconcile(
            folder.name,
            folder.parent,
            approval_timeout=approval_timeout,
            notify=notify,
            group_id="stages",
            prefix_group_id=False,
            **group,
        )
    return dag
