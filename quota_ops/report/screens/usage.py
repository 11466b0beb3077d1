"""The screens of `usage`, `record` and `suggest`: use beside limits, and who is throttled now."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.quota import format_limit, json_number, limits_a_client
from quota_ops.model.text import command, counted, floor_percent, format_percent, plural
from quota_ops.model.usage.digest import DigestedDay
from quota_ops.model.usage.suggestion import Suggestion
from quota_ops.model.usage.throttling import ENOUGH, ThrottledNow
from quota_ops.model.usage.use import (
    SEEN,
    QuotaUse,
    SeriesShare,
    UseOverview,
    UseVerdict,
    explain_others,
    explain_step,
    find_stretch,
)
from quota_ops.report.outline.formats import (
    duration,
    format_rate,
    format_seconds,
    format_span,
    moment,
)
from quota_ops.report.outline.layout import Cells, Line, Screen, Span, Table, Tone, line

_BAR = 10
"""The characters of a full bar."""
_PARTS = " ▏▎▍▌▋▊▉█"
TOLERANCE = 0.2
"""By what share of `step` the interval of scrapes may differ."""


def draw_bar(share: float) -> str:
    """Return a bar that is full at a share of 1."""
    eighths = min(8 * _BAR, max(0, round(share * 8 * _BAR)))
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_PARTS[rest] if rest else "")).ljust(_BAR)


def format_range(least: float | None, most: float | None) -> str:
    """Format a time that is known as a range: `45 s`, `up to 7.2 h`; empty if it is unknown."""
    return "" if least is None or most is None else format_span(least, most)


def usage_screen(overview: UseOverview, shown: Sequence[QuotaUse]) -> Screen:
    """Return the window and the part of it with data, the shown quotas, and what is unknown."""
    headings = ("entity", "key", "limit", "p95", "share of the limit", "at limit", "highest seen")
    rows = (_cells(quota, overview) for quota in shown)
    table = [Table.of((*headings, "owner", "note"), rows)] if shown else []
    listed = f"{counted(len(shown), 'quota')} of {len(overview.quotas):,}"
    entities = {quota[:2] for quota in shown}
    hidden = (quota for quota in overview.quotas if quota[:2] not in entities)
    if unknown := sum(quota.verdict is UseVerdict.UNKNOWN for quota in hidden):
        listed += f", and the use of {unknown:,} more is unknown"
    return [
        *list_coverage(overview),
        line(),
        *table,
        *([line()] if table else []),
        line(f"{listed}; use is shown for the busiest client on its busiest broker, not added up."),
        *_remarks(overview),
    ]


def list_coverage(overview: UseOverview) -> list[Line]:
    """Return the window and the part of it with data, and what may be missing or too much."""
    window = f"{overview.cluster} from {iso_utc(overview.start)} to {iso_utc(overview.end)}"
    head = line(f"{window}, seen {floor_percent(overview.seen)} of the time", Tone.STRONG)
    return [head, *(line(f"  {words}", Tone.CHANGE) for words in _list_doubts(overview))]


def _list_doubts(overview: UseOverview) -> Iterator[str]:
    interval, step = overview.scrape_interval, overview.step
    if (stretch := find_stretch(interval, step)) > 1:
        yield explain_step(interval, step)
    for broker, share in overview.coverage.items():
        if (unseen := 1 - share * stretch) > 1 - SEEN:
            yield f"{broker} was not seen for {format_seconds(unseen * overview.seconds)}."
    yield from _compare_brokers(overview)
    for key, seconds in overview.without_series.items():
        if seconds > (1 - SEEN) * overview.seconds:
            yield (
                f"{key} has no series in {format_seconds(seconds)} of that time: no client used it "
                "then, or a rule or a name was another. So nothing is called unused."
            )
    if overview.without_names:
        text = f"Some series of {', '.join(overview.without_names)} have no names of clients, so"
        probe = f"{command('usage', overview.cluster)} --probe shows why."
        yield f"{text} its rows may be of others: {probe}"
    if overview.limits_known < SEEN:
        text = f"The limits are known for {floor_percent(overview.limits_known)} of the time only"
        yield f"{text}: no run saw them before."


def _compare_brokers(overview: UseOverview) -> Iterator[str]:
    """Yield which registered brokers were not seen, or which others were."""
    registered, scraped = overview.registered_brokers, len(overview.coverage)
    if not overview.is_read:
        yield "No day of that time is recorded and can be read: use is unknown."
    elif overview.absent_brokers or overview.other_brokers:
        yield from list_unmatched(overview.absent_brokers, overview.other_brokers)
    elif registered is not None and registered > scraped:
        text = f"{scraped} of {counted(registered, 'broker')} were ever scraped"
        yield f"{text}: use on the others is unknown."
    elif registered is not None and registered < scraped:
        yield explain_others(scraped, registered)


def list_unmatched(absent: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """Yield that registered brokers were not scraped, and that others were."""
    yield from (f"{each} was never scraped: use on it is unknown." for each in absent)
    for each in others:
        yield (
            f"{each} is not registered: it was removed, or match selects another cluster, "
            "whose use is counted here."
        )


def _remarks(overview: UseOverview) -> list[Line]:
    lines = [
        line(
            f"Scraped every {overview.scrape_interval:.0f} s: shorter peaks are not seen, so the "
            "highest is a lower bound.",
            Tone.CONTEXT,
        )
    ]
    if overview.recorded_days:
        text = (
            f"{counted(overview.recorded_days, 'day')} of this time "
            f"{plural(overview.recorded_days, 'is', 'are')} recorded: there, rates are exact to "
            "2.5 %, and the highest limit of a day counts for all of it."
        )
        if overview.measured_times:
            text += (
                " Of the other time, only p50, p95 and the highest are known, so a p95 of both may "
                "be too high, but not too low."
            )
        lines.append(line(text, Tone.CONTEXT))
    if overview.last_look:
        text = f"Limits are as they were at that time; since {iso_utc(overview.last_look)}"
        lines.append(line(f"{text} no run has read them.", Tone.CONTEXT))
    else:
        lines.append(
            line("No run has read the quotas yet: quota-ops plan reads them.", Tone.CHANGE)
        )
    lines += [
        line(f"{counted(number, 'client')} used {key} without a limit.", Tone.CONTEXT)
        for key, number in overview.without_limit.items()
    ]
    return lines


def _cells(quota: QuotaUse, overview: UseOverview) -> Cells:
    busiest = quota.busiest
    limit = format_limit(quota.key, quota.limit)
    own = (Span(quota.entity.text, Tone.STRONG), quota.key, limit)
    owner = Span(quota.owner or "", Tone.CONTEXT)
    if busiest is None:
        note = str(quota.verdict)
        if quota.verdict is UseVerdict.UNUSED:
            note += f" since {iso_utc(overview.start)} at least"
        if quota.reason:
            note += f": {quota.reason}"
        return (*own, "", "", "", "", owner, Span(note, Tone.CONTEXT))
    share = busiest.share
    bar = "" if share is None else f"{draw_bar(share)} {floor_percent(share)}"
    tone = Tone.PLAIN if busiest.at_limit == 0 else Tone.REFUSAL
    at_limit = format_range(busiest.at_limit_least, busiest.at_limit)
    return (
        *own,
        format_rate(quota.key, busiest.p95),
        Span(bar, tone),
        Span(at_limit if share is not None else "", tone),
        format_rate(quota.key, busiest.highest),
        owner,
        Span(_note(quota, busiest, overview), Tone.CONTEXT),
    )


def _note(quota: QuotaUse, busiest: SeriesShare, overview: UseOverview) -> str:
    """Return further facts about the busiest series."""
    names = {"user": busiest.user, "client-id": busiest.client_id}
    own = {kind: name for kind, name in quota.entity.parts if name is not None}
    others = [
        f"{kind} {name}" for kind, name in names.items() if name is not None and kind not in own
    ]
    notes = [" ".join(others)] if others else []
    if len(quota.clients) > 1:
        notes.append(f"the busiest of {counted(len(quota.clients), 'client')}")
    if busiest.throttled and busiest.at_limit_least == 0:
        notes.append("throttled")
    if busiest.share is None and limits_a_client(quota.key, quota.limit):
        notes.append("the limit of that time is not known")
    elif busiest.limit is not None and busiest.limit != quota.limit:
        notes.append(f"share of the limit then, {format_limit(quota.key, busiest.limit)}")
    if busiest.limit is not None and busiest.with_limit < SEEN * busiest.counted:
        notes.append(f"p95 of the {format_seconds(busiest.with_limit)} with this limit")
    if busiest.counted < ENOUGH * (seen := overview.seen * overview.seconds):
        times = f"{format_seconds(busiest.counted)} of {format_seconds(seen)}"
        notes.append(f"samples for {times} that were seen")
    return ", ".join(notes)


def usage_json(overview: UseOverview, shown: Sequence[QuotaUse]) -> dict[str, Any]:
    """Return the overview as JSON values; rates are in the unit of the key, shares are of 1."""
    return {
        **overview._asdict(),
        "start": iso_utc(overview.start),
        "end": iso_utc(overview.end),
        "last_look": overview.last_look and iso_utc(overview.last_look),
        "quotas": [
            {
                **quota._asdict(),
                "entity": dict(quota.entity.user_first),
                "limit": json_number(quota.limit),
                "clients": [share._asdict() for share in quota.clients],
            }
            for quota in shown
        ],
    }


USAGE_COLUMNS = (
    *dict.fromkeys((*QuotaUse._fields[:-1], *SeriesShare._fields)),
    *("limit_then", "start", "end", "seen"),
)
"""The columns of `usage_rows`."""


def usage_rows(overview: UseOverview, shown: Sequence[QuotaUse]) -> Iterator[dict[str, Any]]:
    """Yield a row for each quota with its busiest client, the window, and the part with data."""
    for quota in shown:
        own, fields = quota._asdict(), SeriesShare._fields
        busiest = quota.busiest._asdict() if quota.busiest else dict.fromkeys(fields)
        del own["clients"]
        yield {
            **own,
            "entity": quota.entity.text,
            "limit": json_number(quota.limit),
            **{name: value for name, value in busiest.items() if name != "limit"},
            "limit_then": busiest["limit"],
            "start": iso_utc(overview.start),
            "end": iso_utc(overview.end),
            "seen": round(overview.seen, 4),
        }


def select_quotas(
    quotas: Iterable[QuotaUse], *, near: float | None, unused: bool
) -> list[QuotaUse]:
    """Return the quotas from a share of their limit on, or that nobody used.

    A client that was throttled below its limit is near it: while it waits, it shows little use. The
    nearest to their limit come first.
    """
    found = [
        quota
        for quota in quotas
        if (not unused or quota.verdict is UseVerdict.UNUSED)
        and (near is None or _share(quota) * 100 >= near or _is_muted(quota))
    ]
    return sorted(found, key=_share, reverse=True)


def _share(quota: QuotaUse) -> float:
    return (quota.busiest.share or 0.0) if quota.busiest else -1.0


def _is_muted(quota: QuotaUse) -> bool:
    return any(client.throttled and client.at_limit_least == 0 for client in quota.clients)


_DAY_HEADINGS = ("day", "clients", "brokers", "seen")


def digests_screen(cluster: str, days: Sequence[DigestedDay]) -> Screen:
    """Return a row for each day that was read, why others are missing, and how many there are."""
    stored = [day for day in days if day.why is None]
    missing = [day for day in days if day.why is not None]
    doubts = [
        f"{day.day}: {day.doubt} Then record it again: {command('record', cluster, day=day.day)}"
        for day in stored
        if day.doubt
    ]
    if not days:
        return (line(f"Every day of {cluster} is stored already.", Tone.OK),)
    cells = (
        (day.day, f"{day.series:,}", f"{day.brokers:,}", floor_percent(day.share)) for day in stored
    )
    return (
        *((Table.of(_DAY_HEADINGS, cells), line()) if stored else ()),
        *(line(f"{day.day} is missing: {day.why}", Tone.CHANGE) for day in missing),
        *(line(text, Tone.CHANGE) for text in doubts),
        line(f"Stored the use of {cluster} on {counted(len(stored), 'day')}."),
    )


_SUGGESTED = ("entity", "key", "limit", "suggested", "change", "why")


def suggestions_screen(overview: UseOverview, found: Sequence[Suggestion]) -> Screen:
    """Return a row for each quota that use says something about, those with a limit first."""
    rows = sorted(found, key=lambda each: (each.suggested is None, each.entity, each.key))
    number = sum(each.suggested is not None for each in found)
    return (
        *list_coverage(overview),
        line(),
        *((Table.of(_SUGGESTED, map(_suggested_cells, rows)), line()) if rows else ()),
        line(f"{counted(number, 'limit')} suggested for {counted(len(overview.quotas), 'quota')}."),
    )


def _suggested_cells(found: Suggestion) -> tuple[str, ...]:
    suggested, change = "", ""
    if found.suggested is not None:
        suggested = format_limit(found.key, found.suggested)
        percent = 100 * (found.suggested / found.limit - 1)
        rounded = float(f"{percent:.3g}")
        change = format_percent(rounded if rounded > -100 else percent)  # noqa: PLR2004 - all of it
    limit = format_limit(found.key, found.limit)
    return found.entity, found.key, limit, suggested, change, found.reason


THROTTLED_HEADINGS = ("client", "key", "limit", "quota", "owner", "mean delay", "broker")


def throttled_screen(found: ThrottledNow) -> Screen:
    """Return a row for each throttled client, and what the rows are."""
    words = line(describe_throttled(found))
    rows = list(list_throttled(found))
    return (Table.of(THROTTLED_HEADINGS, rows), line(), words) if rows else (words,)


def describe_throttled(found: ThrottledNow) -> str:
    """Return who was throttled when a run planned, or why that is unknown."""
    if found.trouble is not None:
        return f"Whether a client is throttled is unknown: {' '.join(found.trouble.split())}."
    verb = plural(found.count, "was", "were")
    count = f"{counted(found.count, 'client')} {verb}" if found.count else "No client was"
    text = f"{count} throttled in the minute before {moment(found.at)}"
    if found.count > len(found.clients):
        text += f", of which these {len(found.clients)} wait longest"
    if found.seen < found.brokers:
        brokers = f"{found.seen} of {counted(found.brokers, 'broker')}"
        text += f"; {brokers} were scraped, so the others are unknown"
    if found.others:
        text += f"; of {', '.join(found.others)}, which no run found registered, it is not known"
        text += " whether their clients are of this cluster"
    elif found.seen > found.brokers > 0:
        text += f"; {explain_others(found.seen, found.brokers).rstrip('.')}"
    elif found.count and found.others is None:
        text += "; the labels of the scraped brokers do not show whether they are of this cluster"
    return f"{text}. A delay is the mean of the throttled responses, not a share of time."


def list_throttled(found: ThrottledNow, cluster: str = "") -> Iterator[tuple[str, ...]]:
    """Yield the cells of each throttled client, the longest delay first."""
    for client in found.clients:
        yield (
            *filter(None, (cluster,)),
            client.client,
            client.key,
            "" if client.limit is None else format_limit(client.key, client.limit),
            client.quota or "unknown",
            client.owner or "",
            duration(client.wait / 1000),
            client.broker,
        )
