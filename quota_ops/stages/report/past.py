"""The artifact past.json: the history before a run, for its report and each later copy of it."""

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import HistoryRow
from quota_ops.model.history.past import Past, select_past
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.events import list_changes
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.screens.history import change_cells
from quota_ops.sql.history import Newest, read_history
from quota_ops.stages.report.run_report import find_look
from quota_ops.store.history.history import Day, list_days
from quota_ops.store.ledger.holds import list_since
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import PAGE, PAST
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import NamedCluster, list_ids
from quota_ops.store.run.state import RunState

_log = logging.getLogger(__name__)
MOST_DAYS = 90
"""How many days a report shows."""
CHANGED_DAYS, MOST_CHANGES = 7, 100
"""For how many days, and how many at most, the changes are on the page of a report."""
MOST_CHANGED_BYTES = 500_000
"""The most bytes of the history that are read for the changes of a report, in 0.1 s."""
MOST_ENDS = 300
"""The most files of ends that a report reads, each in 5 ms; a compacted day is one file."""
_MANY = (
    "The history has {ends:,} runs that are not compacted yet, which takes too long to read for "
    "each report. The first run of tomorrow compacts them; quota-ops history {cluster} shows them."
)


def add_past(folder: RunFolder, report: Report) -> Report:
    """Return a report with the history before its run, which is read once and then kept.

    A run without a plan has none. The history never makes a report fail: the page shows why it
    could not be read.
    """
    if report.plan is None or report.past is not None:
        return report
    try:
        past = _read_past(folder, report)
    except Exception as error:  # noqa: BLE001 - a report does not depend on the history
        past = Past(trouble=f"The history cannot be read: {' '.join(str(error).split())}.")
        _log.warning("%s", past.trouble)
    previous = _follow(folder)
    past = replace(past, previous=previous, compared=_find_comparison(folder, previous))
    folder.write(PAST, past)
    return replace(report, past=past)


def _follow(folder: RunFolder) -> str | None:
    """Return the previous run by the same DAG or command line, and record this one as the newest.

    The users who may see a report in Airflow may see that of an earlier run of the same DAG too.
    """
    if folder.only_read:
        return None
    about, run, runs = folder.about(), folder.place.name, folder.place.parent
    try:
        newest = folder.store.newest_run(about.cluster, about.cluster_id or "", about.dag_id)
        found = newest.read().decode() if newest.exists() else "\n"
        before, _, earlier = found.partition("\n")
        previous = earlier if before == run else before  # a run that starts over finds itself
        newest.replace(f"{run}\n{previous}".encode())
        return previous if previous and (runs / previous / PAGE).exists() else None
    except (InvalidInput, OSError, ValueError) as error:
        _log.warning("the report of the run before is not linked: %s", error)
        return None


def _find_comparison(folder: RunFolder, run: str | None) -> str | None:
    """Return when another run read the cluster to compare it; None if it did not."""
    earlier = RunFolder(folder.place.parent / run) if run else None
    with suppress(InvalidInput, OSError):
        return find_look(RunState(earlier)) if earlier and earlier.has(DIFFERENCES.file) else None
    return None


def _read_past(folder: RunFolder, report: Report) -> Past:
    """Return the history of the rows that differ, of the days, and of the newest changes."""
    store = folder.store
    is_shared = len(list_ids(store.list_names(), report.cluster)) > 1
    cluster = NamedCluster((report.cluster,), report.cluster_id if is_shared else None)
    days = list_days(store, clusters=[report.cluster])
    if (ends := sum(len(day.ends) for day in days if not day.compacted)) > MOST_ENDS:
        return Past(trouble=_MANY.format(ends=ends, cluster=report.cluster))
    differences = report.plan.differences if report.plan else ()
    newest = _choose_changes(days, report)
    found = read_history(store, cluster, {row.entity for row in differences}, newest=newest)
    past = select_past(found.quotas, found.days, differences, MOST_DAYS)
    if newest:
        past = replace(past, changes=_list_changes(store, newest, found.changes))
    if found.troubles:
        past = replace(past, trouble=f"The history is not complete: {'; '.join(found.troubles)}.")
    return past


def _choose_changes(days: Iterable[Day], report: Report) -> Newest | None:
    """Return which changes the page shows.

    None of a store with many runs, whose rows would take too long for each report.
    """
    since = f"{datetime.fromisoformat(report.finished) - timedelta(days=CHANGED_DAYS):%Y-%m-%d}"
    # A month is read in part.
    size = sum(day.size for day in days if day.reaches(since) and day.date != day.month)
    if report.cluster_id is None or size > MOST_CHANGED_BYTES:
        return None
    return Newest(report.cluster_id, since, MOST_CHANGES)


def _list_changes(
    store: RunStore, newest: Newest, rows: Sequence[HistoryRow]
) -> tuple[tuple[str, ...], ...]:
    """Return the cells of each change, the newest first."""
    changes = list_changes(rows, list_since(store, [newest.cluster_id], newest.since))
    shown = changes[: -MOST_CHANGES - 1 : -1]
    return tuple(tuple(escape_text(span.text) for span in change_cells(event)) for event in shown)
