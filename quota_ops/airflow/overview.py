"""What the overview of all clusters is made from: their reports of this run, and the history."""

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from quota_ops.airflow.runs import ClusterFolder, start_folder
from quota_ops.model.errors import InvalidInput
from quota_ops.model.report import StageStatus

if TYPE_CHECKING:
    from quota_ops.model.fleet_history import FleetHistory
    from quota_ops.model.report import Report
    from quota_ops.store.run_store import RunStore

_log = logging.getLogger(__name__)
_LOOK_BACK = timedelta(days=30)


class Found(NamedTuple):
    """The report of a cluster or why it has none, and when a run last wrote its quotas."""

    report: "Report | str"
    changed: str | None = None


def read_cluster(cluster: ClusterFolder, run_store: str | None) -> Found:
    """Return the report of a cluster, or why it has none or could not be compared."""
    from quota_ops.model.tables import LEDGER
    from quota_ops.stages.report.run_report import read_report

    folder = start_folder(cluster, run_store)
    for stage in ("check", "describe", "diff", "plan", "report"):
        result = folder.stage_result(stage)
        if result.status not in {StageStatus.DONE, StageStatus.REFUSED}:
            return Found(f"{stage} {result.message or result.status}")
    changed = max(folder.read_table(LEDGER)["at"].to_pylist(), default=None)
    return Found(read_report(folder), changed)


def read_last_days(store: "RunStore") -> "FleetHistory":
    """Return the history of the last 30 days; empty, with a warning, if it cannot be read."""
    from quota_ops.model.fleet_history import FleetHistory
    from quota_ops.sql.fleet_history import read_fleet_history

    try:
        return read_fleet_history(store, f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}")
    except InvalidInput as error:
        _log.warning("the overview has no history: %s", error)
        return FleetHistory()
