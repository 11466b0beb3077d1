"""New and known drift, who changed a quota, and who set it last, in words."""

from datetime import datetime

from quota_ops.model.history.history import QuotaHistory
from quota_ops.model.history.past import Past
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import escape_text, moment, short_commit
from quota_ops.report.outline.row_status import ReportRow, RowStatus, report_rows

NEW, KNOWN = "new", "known"
_HOUR, _DAY = 3600, 86_400


def format_age(since: str, now: str) -> str:
    """Return the time between two ISO 8601 times in words: `3 days`, `5 hours`, `2 minutes`."""
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()
    for size, noun in ((_DAY, "day"), (_HOUR, "hour"), (60, "minute")):
        if seconds >= size:
            return counted(int(seconds // size), noun)
    return "less than a minute"


def find_news(row: ReportRow, past: Past | None) -> str:
    """Return `new` for drift that no earlier run found, otherwise `known`; empty if unknown."""
    is_new = past.is_new(row.difference) if past else None
    return "" if is_new is None else NEW if is_new else KNOWN


def list_drift(report: Report) -> list[ReportRow]:
    """Return the rows that were changed outside Git and still are, held ones included."""
    states = {RowStatus.DRIFTED, RowStatus.HELD}
    return [row for row in report_rows(report) if row.status in states and row.difference.is_drift]


def describe_news(report: Report) -> str:
    """Return how much of the drift is new, for the summary; empty if that is not known."""
    past = report.past
    drifted = list_drift(report)
    news = [find_news(row, past) for row in drifted]
    if past is None or not drifted or "" in news:
        return ""
    new, known = news.count(NEW), news.count(KNOWN)
    if new and known:
        return f"{new:,} new, {known:,} known"
    if new:
        return "new since the last run"
    first = min(past.quotas[row.difference.id].drifted_since or "" for row in drifted)
    return f"known since {moment(first)}"


def find_since(row: ReportRow, past: Past | None) -> str:
    """Return since when the cluster has the value of a row.

    That is the time of the alter that set it, if known; for other drift, the last time that a run
    found the value of Git; otherwise, the last time at which the cluster did not have the value.
    Empty for a change of Git: nobody changed the cluster.
    """
    if altered := _find_alter(row, past):
        return moment(altered.altered_at)
    if past and row.difference.is_drift and (last := past.find_last_agreement(row.difference)):
        return f"after {moment(last)}"
    difference = row.difference
    is_ledger_other = difference.is_drift or difference.memory is not None
    known = difference.since if is_ledger_other else None
    if known := known or (row.origin and row.origin.after):
        return f"after {moment(known)}"
    is_of_git = difference.since is not None and not is_ledger_other
    return "" if difference.before is None or is_of_git else "unknown"


def _find_alter(row: ReportRow, past: Past | None) -> QuotaHistory | None:
    """Return the history of a row that an alter changed, unless its origin names that."""
    return past.find_alter(row.difference) if past and not row.origin else None


def describe_past(row: ReportRow, past: Past | None, now: str) -> list[str]:
    """Return the past of a row in sentences: first seen, changed by whom, set by which run."""
    known = past.find(row.difference) if past else None
    if past is None or (known is None and not row.difference.is_drift):
        return []
    is_new = past.is_new(row.difference)
    words = [] if is_new is None else [_describe_drift(known, now, is_new=is_new)]
    if altered := _find_alter(row, past):
        by = f" by {altered.altered_by}" if altered.altered_by else ""
        why = f": {altered.altered_reason}" if altered.altered_reason else ""
        words.append(
            f"Changed{by} with alter on {moment(altered.altered_at)}{why} "
            f"(run {altered.altered_run})."
        )
    elif row.difference.is_drift and not row.origin and past.trouble is None:
        words.append("No alter in the history did it, and Kafka does not record who did.")
    if known and known.set_at:
        commit = (
            f", as commit {short_commit(known.set_commit)} declared" if known.set_commit else ""
        )
        did = "Cleared" if known.set_value is None else "Set"
        words.append(f"{did} last by run {known.set_run} on {moment(known.set_at)}{commit}.")
    return [escape_text(text) for text in words]


def _describe_drift(known: QuotaHistory | None, now: str, *, is_new: bool) -> str:
    before = known.drifts - (not is_new) if known else 0
    times = f"It drifted {counted(before, 'time')} before." if before else ""
    if is_new or known is None or known.drifted_since is None:
        return f"New: no earlier run found it. {times}".rstrip()
    since, age = moment(known.drifted_since), format_age(known.drifted_since, now)
    return f"Known: first found {since}, {age} before this run. {times}".rstrip()
