"""Who is held, as a table."""

from collections.abc import Sequence
from datetime import datetime

from quota_ops.model.hold import Hold
from quota_ops.report.screen import Row, Screen, Span, Table, Tone, line
from quota_ops.report.wording import moment

HEADINGS = ("who", "until", "by", "since", "why")


def holds_screen(words: Sequence[Hold], now: datetime) -> Screen:
    """A row for each word, what lasts at `now` apart from what has ended."""
    if not words:
        return (line("Nothing is held."),)
    return (Table(HEADINGS, tuple(_row(one, now) for one in words)),)


def _row(one: Hold, now: datetime) -> Row:
    until = "released" if one.is_release else moment(one.until.isoformat())
    tone = Tone.CHANGE if one.until > now else Tone.CONTEXT
    cells = (one.by, moment(one.at.isoformat()), one.reason)
    return Row((Span(one.who.text, Tone.STRONG), Span(until, tone), *map(Span, cells)))
