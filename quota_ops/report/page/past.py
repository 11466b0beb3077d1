"""The history of a cluster on its page: charts of its days, and a table with the same numbers."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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
from quota_ops.report.screens.history import CHANGE_HEADINGS


class Chart(NamedTuple):
    """A chart, its name, and its newest number with its day."""

    name: str
    newest: str
    day: str
    drawn: Markup


def _find_share(day: DayHistory) -> float | None:
    """Return how many percent are in sync; None if no run compared that day."""
    return None if day.in_sync is None else compute_share(day.in_sync, day.declared or 0)


_NUMBERS: tuple[tuple[str, str, str, Callable[[DayHistory], float | None]], ...] = (
    ("Share in sync", "%", "in-sync", _find_share),
    ("Drifted quotas", "", "drifted", lambda day: day.drifted),
    ("Changes applied", "", "changed", lambda day: day.changed),
)


class PastSection(NamedTuple):
    """What happened before a run: charts, the cells of each day and change, and trouble with it."""

    charts: Sequence[Chart] = ()
    days: Sequence[tuple[str, ...]] = ()
    changes: Sequence[tuple[str, ...]] = ()
    trouble: str = ""
    change_headings: tuple[str, ...] = CHANGE_HEADINGS


def show_past(report: Report) -> PastSection:
    """Return what happened before a run, and on its charts the state that it left."""
    past = report.past
    if past is None:
        return PastSection()
    days = add_run(past.days, report)
    return PastSection(list(draw_charts(days)), list_days(days), past.changes, past.trouble or "")


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
        changed=last.changed + changed,
    )
    return (*kept, this)


def draw_charts(days: Sequence[DayHistory]) -> Iterator[Chart]:
    """Yield the charts of a cluster's days; none for less than two days."""
    for name, unit, tone, find in _NUMBERS:
        numbers = DailyNumber(name, [(day.date, find(day)) for day in days], unit)
        if drawn := draw_chart(numbers, tone):
            day, newest = numbers.known[-1]
            yield Chart(name, numbers.format(newest), f"{day:%Y-%m-%d}", drawn)


def list_days(days: Sequence[DayHistory]) -> list[tuple[str, ...]]:
    """Return the cells of each day, the newest first: those of the charts, and repairs."""
    return [
        (
            day.date,
            "" if day.declared is None else f"{day.in_sync or 0:,} of {day.declared:,}",
            "" if day.drifted is None else f"{day.drifted:,}",
            f"{day.changed:,}",
            f"{day.repaired:,}",
        )
        for day in reversed(days)
    ]
