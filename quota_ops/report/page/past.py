"""The history of a cluster on its page: the days before its run and until it, and their charts."""

from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup

from quota_ops.model.history.history import DayHistory, compute_share
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.row_status import (
    RowStatus,
    count_in_sync,
    count_statuses,
    report_rows,
)
from quota_ops.report.page.chart import DailyNumber, draw_chart


def _find_share(day: DayHistory) -> float | None:
    """Return how many percent are in sync; None if no run compared that day."""
    return None if day.in_sync is None else compute_share(day.in_sync, day.declared or 0)


_NUMBERS: tuple[tuple[str, str, str, Callable[[DayHistory], float | None]], ...] = (
    ("Share in sync", "%", "in-sync", _find_share),
    ("Drifted quotas", "", "drifted", lambda day: day.drifted),
    ("Changes applied", "", "changed", lambda day: day.changed),
)


def add_run(days: Sequence[DayHistory], report: Report) -> tuple[DayHistory, ...]:
    """Return the days before a run; the last one has the state that the run left.

    Its other numbers come from earlier runs. A run that did not compare adds nothing.
    """
    if report.plan is None or not days:
        return tuple(days)
    today = report.finished[:10]
    kept = [day for day in days if day.date < today]
    last = days[-1]
    if last.date != today:
        last = last._replace(date=today, changed=0, repaired=0)
    counts = count_statuses(report)
    changed = sum(row.was_written for row in report_rows(report))
    this = last._replace(
        declared=report.plan.desired,
        in_sync=count_in_sync(report),
        drifted=counts[RowStatus.DRIFTED],
        not_judged=counts[RowStatus.NOT_JUDGED],
        changed=last.changed + changed,
    )
    return (*kept, this)


def draw_charts(days: Sequence[DayHistory]) -> Iterator[tuple[DailyNumber, Markup]]:
    """Yield the charts of a cluster's days; none for less than two days."""
    for name, unit, tone, find in _NUMBERS:
        numbers = DailyNumber(name, [(day.date, find(day)) for day in days], unit)
        if drawn := draw_chart(numbers, tone):
            yield numbers, drawn
