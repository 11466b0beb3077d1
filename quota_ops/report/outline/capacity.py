"""What Git promises on each broker beside what a broker can serve, as a table with bars."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from quota_ops.model.plans.capacity import Promises
from quota_ops.model.quotas.quota import add_limits, format_limit
from quota_ops.model.runs.report import Report
from quota_ops.model.text import format_percent
from quota_ops.report.outline.layout import Cells, Screen, Span, Table, Tone, line

MOST = 10
"""How many owners of a key are shown; report.json has all."""
HEADINGS = ("key", "owner", "promised", "of capacity", "")
_WIDTH = 30


class Share(NamedTuple):
    """A line of the table; `part` is how long its bar is, in thousandths of the longest."""

    key: str
    owner: str
    promised: str
    times: str
    part: int
    is_total: bool
    is_beyond: bool


def list_shares(promises: Sequence[Promises]) -> Iterator[Share]:
    """Yield the total of each key, then its owners, those to whom most is promised first."""
    for promise in promises:
        longest = max(promise.times, promise.factor, 1.0)
        of = f"all, of {format_limit(promise.key, promise.capacity)}"
        if promise.factor != 1.0:
            of += f" (up to {promise.factor:g} times)"
        yield _share(promise, of, promise.total, longest)
        shown, others = promise.owners[:MOST], promise.owners[MOST:]
        for owner, value in shown:
            yield _share(promise, owner or "no owner", value, longest, is_total=False)
        if others:
            value = add_limits(value for _, value in others)
            yield _share(promise, f"{len(others):,} more", value, longest, is_total=False)


def _share(
    promise: Promises, owner: str, value: float, longest: float, *, is_total: bool = True
) -> Share:
    times = value / promise.capacity
    return Share(
        promise.key if is_total else "",
        owner,
        format_limit(promise.key, value) if value else "nothing",
        format_percent(round(100 * times, 1)).removeprefix("+"),
        round(1000 * times / longest),
        is_total,
        is_total and promise.is_beyond,
    )


def format_scope(report: Report) -> str:
    """Return which promises the table has, as the end of its title."""
    without = ", ".join(file.file for file in report.invalid)
    return f"without those of {without}, which is invalid" if without else ""


def capacity_screen(report: Report) -> Screen:
    """Return the table for text; empty if no capacity is declared."""
    rows = [*map(_cells, list_shares(report.promises))]
    title = ": ".join(filter(None, ("Capacity of a broker", format_scope(report))))
    return (line(), line(title, Tone.STRONG), Table.of(HEADINGS, rows)) if rows else ()


def _cells(share: Share) -> Cells:
    tone = Tone.REFUSAL if share.is_beyond else Tone.STRONG if share.is_total else Tone.PLAIN
    bar = "#" * round(_WIDTH * share.part / 1000)
    return (
        Span(share.key, Tone.STRONG),
        share.owner,
        Span(share.promised, tone),
        Span(share.times, tone),
        Span(bar, tone if share.is_total else Tone.CONTEXT),
    )
