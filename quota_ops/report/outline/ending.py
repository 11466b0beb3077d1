"""Holds that end soon: from then on, runs write the entities again."""

from datetime import datetime, timedelta

from quota_ops.model.moment import iso_utc
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.formats import escape_text, moment
from quota_ops.report.outline.sentences import describe_holds

SOON = timedelta(days=7)


def count_ending(report: Report) -> str:
    """Return how many holds end within a week of a report, and when; empty for none.

    `2 holds end, the first at 2026-11-21 15:15 UTC`: it has no time left, as a page is read later.
    """
    holds = report.plan.holds if report.plan else ()
    latest = datetime.fromisoformat(report.finished) + SOON
    ends = [hold.until for hold in holds if hold.until <= latest]
    if not ends:
        return ""
    number, first = len(ends), moment(iso_utc(min(ends)))
    return f"{counted(number, 'hold')} {plural(number, 'ends', 'end, the first')} at {first}"


def list_holds(report: Report) -> list[str]:
    """Return each hold in words, the first to end first."""
    if report.plan is None:
        return describe_holds(report)
    holds = sorted(report.plan.holds, key=lambda hold: hold.until)
    return [escape_text(f"{hold.who.text} is {hold.text}") for hold in holds]
