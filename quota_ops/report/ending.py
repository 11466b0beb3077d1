"""Holds that end soon: from then on, runs write the entities again."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from quota_ops.model.hold import Hold
from quota_ops.model.moment import iso_utc
from quota_ops.model.report import Report
from quota_ops.model.text import counted, plural
from quota_ops.report.formats import escape_text
from quota_ops.report.past import format_age
from quota_ops.report.sentences import holds_words

SOON = timedelta(days=7)


def list_ending(report: Report) -> list[Hold]:
    """Return the holds that end soon after a report, the first to end first."""
    holds = report.plan.holds if report.plan else ()
    latest = datetime.fromisoformat(report.finished) + SOON
    return sorted((one for one in holds if one.until <= latest), key=lambda one: one.until)


def count_ending(report: Report) -> str:
    """Return how many holds end soon, `1 hold ends within 7 days`; empty for none."""
    number = len(list_ending(report))
    ends = plural(number, "ends", "end")
    return f"{counted(number, 'hold')} {ends} within {SOON.days} days" if number else ""


def mark_holds(report: Report) -> Iterator[tuple[str, str]]:
    """Yield each hold in words, and `ends in 5 hours` if it ends soon; those come first."""
    if report.plan is None:
        yield from ((words, "") for words in holds_words(report))
        return
    ending = list_ending(report)
    for hold in (*ending, *(one for one in report.plan.holds if one not in ending)):
        words = escape_text(f"{hold.who.text} is {hold.text}")
        yield words, _say_end(hold, report.finished) if hold in ending else ""


def _say_end(hold: Hold, now: str) -> str:
    until = iso_utc(hold.until)
    return f"ends in {format_age(now, until)}" if until > now else "has ended"
