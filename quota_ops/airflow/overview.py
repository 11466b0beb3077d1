"""The input of the overview of all clusters: their reports of this run, and the history."""

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from quota_ops.airflow.runs import ClusterFolder, start_folder
from quota_ops.model.errors import InvalidInput
from quota_ops.model.runs.stages import StageStatus

if TYPE_CHECKING:
    from quota_ops.model.history.history import FleetHistory
    from quota_ops.model.runs.report import Report
    from quota_ops.store.places.run_store import RunStore

_log = logging.getLogger(__name__)
_LOOK_BACK = timedelta(days=30)


class Found(NamedTuple):
    """The report of a cluster or why it has none, and when a run last wrote its quotas."""

    report: "Report | str"
    changed: str | None = None


def read_cluster(cluster: ClusterFolder, run_store: str | None) -> Found:
    """Return the report of a cluster, or why it has none or could not be compared."""
    from quota_ops.model.quotas.tables import LEDGER
    from quota_ops.stages.report.run_report import read_report

    folder = start_folder(cluster, run_store)
    for stage in ("check", "describe", "diff", "plan", "report"):
        result = folder.stage_result(stage)
        if result.status not in {StageStatus.DONE, StageStatus.REFUSED}:
            return Found(": ".join(filter(None, (f"{stage} {result.status}", result.message))))
    changed = max(folder.read_table(LEDGER)["at"].to_pylist(), default=None)
    return Found(read_report(folder), changed)


def read_last_days(store: "RunStore") -> "FleetHistory":
    """Return the history of the last 30 days; empty, with a warning, if it cannot be read."""
    from quota_ops.model.history.history import FleetHistory
    from quota_ops.sql.history import read_fleet_history

    try:
        return read_fleet_history(store, f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}")
    except InvalidInput as error:
        _log.warning("the overview has no history: %s", error)
        return FleetHistory()


def read_last_looks(store: "RunStore", clusters: Iterable[str]) -> Mapping[str, str]:
    """Return when a run last compared each of these clusters; without those that none compared.

    Empty, with a warning, if the run store cannot be listed.
    """
    from quota_ops.store.run.newest_reports import read_newest_reports

    try:
        reports = read_newest_reports(store, clusters, compared=True)
    except InvalidInput as error:
        _log.warning("the overview does not know when a run last compared a cluster: %s", error)
        return {}
    return {
        name: report.get("looked") or report["finished"]
        for name, report in reports.items()
        if report
    }
