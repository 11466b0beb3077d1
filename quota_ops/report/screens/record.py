"""The screen of `record`: which days of use were stored."""

from collections.abc import Sequence
from math import floor

from quota_ops.model.text import command, counted
from quota_ops.model.usage.digest import DigestedDay
from quota_ops.report.outline.layout import Screen, Table, Tone, line

_HEADINGS = ("day", "clients", "brokers", "seen")


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
        (day.day, f"{day.series:,}", f"{day.brokers:,}", f"{floor(100 * day.share)} %")
        for day in stored
    )
    return (
        *((Table.of(_HEADINGS, cells), line()) if stored else ()),
        *(line(f"{day.day} is missing: {day.why}", Tone.CHANGE) for day in missing),
        *(line(text, Tone.CHANGE) for text in doubts),
        line(f"Stored the use of {cluster} on {counted(len(stored), 'day')}."),
    )
