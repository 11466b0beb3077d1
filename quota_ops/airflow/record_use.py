"""The DAG that keeps what clients used each day, of the clusters whose cluster.yaml has `usage`."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from airflow.sdk import DAG, task

from quota_ops.airflow.connection import find_prometheus
from quota_ops.airflow.errors import is_retryable, log_errors
from quota_ops.airflow.notify import Notify, make_dag_callback
from quota_ops.airflow.options import DEFAULT_ARGS, add_callback
from quota_ops.airflow.runs import ClusterFolder, find_store, work_on_each
from quota_ops.airflow.tasks import build_dag
from quota_ops.model.errors import CannotJudge, Unreachable
from quota_ops.model.text import counted

_log = logging.getLogger(__name__)
DAG_ID = "record_use"
_CRON = "30 0 * * *"
"""Half an hour after a day in UTC has ended, when its last samples have arrived."""
_DAYS = 30
"""How many days back a missing day is looked for; servers keep samples for about two weeks."""
_ABOUT = """\
Stores what clients used on the days that are over, from the Prometheus that `usage` in cluster.yaml
names. Plans and suggestions read it. A day that cannot be read stays missing, which is not a day
without use, and the next run tries it again. It never writes to a cluster.
"""


def build_record_dag(
    clusters: Sequence[ClusterFolder],
    run_store: str | None,
    notify: Notify,
    *,
    prefix: str,
    default_args: Mapping[str, Any],
) -> DAG:
    """Build the DAG that records the use of these clusters once a day."""
    with build_dag(
        prefix + DAG_ID,
        description="Stores what clients used each day; writes to no cluster",
        doc_md=_ABOUT,
        crons=[_CRON],
        subject=DAG_ID,
        notify=notify,
        tags={"quota-ops"},
        default_args={**DEFAULT_ARGS, **default_args},
    ) as dag:
        missed = make_dag_callback(DAG_ID, run_store, notify)
        callbacks = add_callback(default_args, "on_failure_callback", missed)
        record.override(**callbacks)(clusters, run_store)
    return dag


@task
@log_errors()
def record(clusters: Sequence[ClusterFolder], run_store: str | None) -> str:
    """Store the missing days of each cluster, then fail if the use of any is unknown."""
    recorded, errors = work_on_each(clusters, partial(_record, run_store=run_store))
    if errors:
        kind = Unreachable if any(map(is_retryable, errors.values())) else CannotJudge
        raise kind(
            f"the use of {', '.join(errors)} is unknown",
            "Their errors are above; the days of all other clusters are stored.",
        )
    return f"{counted(sum(recorded.values()), 'day')} stored."


def _record(cluster: ClusterFolder, *, run_store: str | None) -> int:
    """Store the missing days of a cluster; return how many were stored."""
    from quota_ops.desired.read import read_policy
    from quota_ops.runs.digests import record_days, require_newest
    from quota_ops.store.history.digests import list_past_days
    from quota_ops.usage.source import find_source

    policy = read_policy(cluster.path)
    source = find_source(policy, find_prometheus)
    days = record_days(find_store(run_store), policy, source, _DAYS)
    for day in days:
        _log.info("%s: %s %s", cluster.name, day.day, day.why or "stored")
        if day.doubt:
            _log.warning("%s: %s %s", cluster.name, day.day, day.doubt)
    require_newest(cluster.name, days, list_past_days(datetime.now(UTC), 1)[0])
    return sum(day.why is None for day in days)
