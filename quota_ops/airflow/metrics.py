"""The state of clusters in Airflow's own metrics: StatsD, OpenTelemetry or Datadog."""

import re
from typing import TYPE_CHECKING

from airflow.sdk.observability import stats

if TYPE_CHECKING:
    from quota_ops.model.runs.report import Report

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 80


def emit_gauges(report: "Report") -> None:
    """Set the gauges quota_ops.NAME.CLUSTER; nothing happens where Airflow's metrics are off.

    NAME is `compared` (1 or 0), `declared`, or a status of a quota; without a plan, only
    `compared`. CLUSTER is in the name because plain StatsD has no tags; the tag `cluster` has it
    too.
    """
    from quota_ops.report.records.json_report import COUNTED, count_rows

    values: dict[str, int] = {"compared": int(report.plan is not None)}
    if report.plan is not None:
        counts = count_rows(report)
        values |= {"declared": report.plan.desired}
        values |= {name: counts[name] or 0 for name in COUNTED}
    cluster = _UNSAFE.sub("_", report.cluster)[:_LONGEST_NAME]
    for name, value in values.items():
        stats.gauge(f"quota_ops.{name}.{cluster}", value, tags={"cluster": cluster})
