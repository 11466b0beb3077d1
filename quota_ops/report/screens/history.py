"""The screens of the history: the days of a cluster, the quotas that drift most, one entity."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from quota_ops.model.history.history import DayHistory, QuotaHistory
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.quota import format_limit, json_number
from quota_ops.model.text import counted
from quota_ops.report.outline.events import REPAIRED, Event
from quota_ops.report.outline.formats import duration, moment, short_commit
from quota_ops.report.outline.layout import Cells, Line, Screen, Span, Table, Tone, line, more_line

MOST = 20
"""How many quotas a screen lists; JSON has them all."""
_QUOTA_HEADINGS = (
    *("entity", "key", "owner", "drifted", "runs", "first seen", "when last compared"),
    "last set by",
)
MOST_CHANGES = 200
"""How many changes a screen lists; JSON has them all."""
_EVENT_HEADINGS = ("when", "key", "what", "change", "by", "run", "commit")


def cluster_screen(days: Sequence[DayHistory], quotas: Sequence[QuotaHistory]) -> Screen:
    """Return a row for each day, the newest first, and the quotas that drifted most."""
    drifted = sorted(quotas, key=_rank_drift)
    table = Table.of(_QUOTA_HEADINGS, map(_quota_cells, drifted[:MOST]))
    return (
        days_table(days),
        line(),
        *((table,) if drifted else (line("No run found a drifted quota."),)),
        *more_line(len(drifted) - MOST, "more, in --format json"),
    )


def _rank_drift(quota: QuotaHistory) -> tuple[bool, int, int, str, str]:
    return (quota.drifted_since is None, -quota.drifts, -quota.times_seen, quota.entity, quota.key)


def _format_in_sync(day: DayHistory) -> str:
    in_sync = "" if day.declared is None else f"{day.in_sync or 0:,} of {day.declared:,}"
    return in_sync + (f", {day.not_judged:,} not judged" if day.not_judged else "")


def _count(number: int | None, tone: Tone) -> Span:
    return Span(f"{number:,}" if number else "", tone)


_DAY_COLUMNS: dict[str, Callable[[DayHistory], Span]] = {
    "day": lambda day: Span(day.date, Tone.STRONG),
    "runs": lambda day: Span(f"{day.runs:,}"),
    "failed": lambda day: _count(day.failed, Tone.REFUSAL),
    "refused": lambda day: _count(day.refused, Tone.REFUSAL),
    "blocked": lambda day: _count(day.blocked, Tone.REFUSAL),
    "in sync": lambda day: Span(_format_in_sync(day)),
    "overriding": lambda day: _count(day.overriding, Tone.REFUSAL),
    "drifted": lambda day: _count(day.drifted, Tone.REFUSAL),
    "pending": lambda day: _count(day.pending, Tone.CHANGE),
    "changed": lambda day: _count(day.changed, Tone.CHANGE),
    "repaired": lambda day: _count(day.repaired, Tone.OK),
    "median repair": lambda day: Span(
        "" if day.repair_median is None else duration(day.repair_median), Tone.CONTEXT
    ),
}
PAGE_COLUMNS = ("day", "in sync", "drifted", "changed", "repaired")
"""The columns of the days on the page of a report."""


def days_table(days: Sequence[DayHistory], columns: Sequence[str] = (*_DAY_COLUMNS,)) -> Table:
    """Return a row for each day, the newest first."""
    rows = ([_DAY_COLUMNS[name](day) for name in columns] for day in reversed(days))
    return Table.of(tuple(columns), rows)


def _quota_cells(quota: QuotaHistory) -> Cells:
    word = Kind.OVERRIDING if quota.kind == Kind.OVERRIDING else Kind.DRIFTED
    now = f"{word} since {moment(quota.drifted_since)}" if quota.drifted_since else f"not {word}"
    return (
        Span(quota.entity, Tone.STRONG),
        quota.key,
        quota.owner or "",
        f"{quota.drifts:,}",
        f"{quota.times_seen:,}",
        Span(moment(quota.first_seen), Tone.CONTEXT),
        Span(now, Tone.REFUSAL if quota.drifted_since else Tone.OK),
        Span(quota.set_run or "", Tone.CONTEXT),
    )


def entity_screen(
    entity: str, since: str, quotas: Sequence[QuotaHistory], events: Sequence[Event]
) -> Screen:
    """Return a sentence for each quota of an entity, and what happened to it, the newest first."""
    rows = ([_COLUMNS[name](event) for name in _EVENT_HEADINGS] for event in reversed(events))
    nothing = line(f"The history has no change or drift of {entity} since {since}.")
    return (
        *(line(_describe_quota(quota)) for quota in quotas),
        *((line(), Table.of(_EVENT_HEADINGS, rows)) if events else (nothing,)),
    )


def _describe_quota(quota: QuotaHistory) -> str:
    name = f"{quota.entity} {quota.key}"
    if not quota.drifts:
        return f"{name}: no run found it drifted."
    is_overriding = quota.kind == Kind.OVERRIDING
    word = Kind.OVERRIDING if is_overriding else Kind.DRIFTED
    last = f"not {word} when last compared"
    if quota.drifted_since:
        last = f"{word} since {moment(quota.drifted_since)} when last compared"
    times, runs = counted(quota.drifts, "time"), counted(quota.times_seen, "run")
    did = f"was {word}" if is_overriding else word
    return f"{name} {did} {times}, seen by {runs}, first {moment(quota.first_seen)}; {last}."


def changes_screen(since: str, changes: Sequence[Event]) -> Screen:
    """Return a row for each change since a day, the newest first, and how many are not listed."""
    if not changes:
        return (line(f"The history has no change since {since}."),)
    newest = map(change_cells, changes[: -MOST_CHANGES - 1 : -1])
    older = more_line(len(changes) - MOST_CHANGES, "older, in --format jsonl")
    return (Table.of(CHANGE_HEADINGS, newest), *older)


def change_cells(change: Event) -> Line:
    """Return the cells of a change, one for each of CHANGE_HEADINGS."""
    return tuple(cell(change) for cell in _COLUMNS.values())


def _change(event: Event) -> str:
    """Return the values before and after, and the value found if it differs from the one sent.

    The value before a repair was set outside Git. For a conflict or an overriding quota, the
    value that was found did not replace the one in Git, so it shows both.
    """
    if event.policy:
        return event.policy
    if event.key is None or (event.before is None and not (event.was_sent or event.found_by)):
        return ""
    before, found = format_limit(event.key, event.before), format_limit(event.key, event.found)
    before += " (outside Git)" if event.what.startswith(REPAIRED) else ""
    if event.kind not in {None, Kind.DRIFTED}:
        return f"{found} (Git: {before})"
    if not event.was_sent:
        return f"{before} -> {found}" if event.found_by and found != before else before
    requested = format_limit(event.key, event.requested)
    change = requested if before == requested else f"{before} -> {requested}"
    if event.found_by is None or (event.found_by == event.run and found == requested):
        return change
    return f"{change}; {found} found by {event.found_by}"


_COLUMNS: dict[str, Callable[[Event], Span]] = {
    "when": lambda event: Span(moment(event.at), Tone.CONTEXT),
    "entity": lambda event: Span(event.entity, Tone.STRONG),
    "key": lambda event: Span(event.key or ""),
    "what": lambda event: Span(event.what, event.tone),
    "change": lambda event: Span(_change(event)),
    "owner": lambda event: Span(event.owner or ""),
    "by": lambda event: Span(event.person),
    "approved by": lambda event: Span(event.approver or ""),
    "commit": lambda event: Span(short_commit(event.commit) if event.commit else "", Tone.CONTEXT),
    "run": lambda event: Span(event.run or "", Tone.CONTEXT),
}
CHANGE_HEADINGS = tuple(_COLUMNS)


def list_json(rows: Iterable[NamedTuple]) -> list[dict[str, object]]:
    """Return rows as JSON objects; NaN and infinity are texts, and colours are left out."""
    return [
        {
            name: json_number(value) if isinstance(value, float) else value
            for name, value in row._asdict().items()
            if not isinstance(value, Tone)
        }
        for row in rows
    ]
