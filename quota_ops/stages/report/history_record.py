"""Append a run to the history; that never makes a run fail."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from quota_ops.model.history.history import HistoryRow
from quota_ops.model.quotas.tables import LEDGER
from quota_ops.model.runs.report import Report
from quota_ops.stages.plan.earlier_runs import count_managed_rows
from quota_ops.stages.report.history_rows import RunEnd, list_report_rows
from quota_ops.stages.report.run_report import read_work_end
from quota_ops.store.history import history
from quota_ops.store.run.folder import RunFolder

_log = logging.getLogger(__name__)


def record_run_history(folder: RunFolder, report: Report) -> str | None:
    """Append a run that compared, or tried to; return why the history lacks it, or None.

    The first run of a day then compacts the days before.
    """
    missed = _append(folder, lambda end: list_report_rows(report, end))
    if missed is None and not folder.only_read:
        try:
            for trouble in history.compact_daily(folder.store, datetime.now(UTC)):
                _log.warning("not in the history: %s", trouble)
        except Exception as error:  # noqa: BLE001 - the history is complete, only slower to read
            _log.warning("the history is not compacted: %s", " ".join(str(error).split()))
    return missed


def _append(folder: RunFolder, list_rows: Callable[[RunEnd], tuple[HistoryRow, ...]]) -> str | None:
    if folder.only_read:
        return None
    try:
        about = folder.about()
        owned = count_managed_rows(folder) if folder.has(LEDGER.file) else {}
        end = RunEnd(
            read_work_end(folder),
            about.sequence,
            about.by,
            owned,
            folder.settlement(),
        )
        history.append(folder.store, list_rows(end))
    except Exception as error:  # noqa: BLE001 - a run has ended as it did without its history
        words = f"this run is not in the history: {' '.join(str(error).split())}"
        _log.warning("%s", words)
        return words
    return None
