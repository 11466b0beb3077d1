"""Which clients brokers throttle at this moment."""

from collections.abc import Iterator

from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.text import counted, plural
from quota_ops.model.usage.throttling import ThrottledNow
from quota_ops.model.usage.use import explain_others
from quota_ops.report.outline.formats import duration, moment
from quota_ops.report.outline.layout import Screen, Table, line

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
