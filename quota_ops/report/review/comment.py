"""The comment of a pull request: what its branch changes, safe whatever names contain."""

from collections import Counter
from collections.abc import Sequence
from html import escape

from quota_ops.model.commit import short
from quota_ops.model.review import ClusterReview, Links, Review
from quota_ops.model.text import counted, plural
from quota_ops.report.formats import escape_text
from quota_ops.report.markdown import LONGEST, code
from quota_ops.report.review.paragraphs import CUT, format_problem, list_paragraphs
from quota_ops.report.review.rows import split_rows
from quota_ops.report.review.table import group_by_owner, other_table, row_lines, table_head
from quota_ops.report.review.verdict import describe_verdict, summarize_review
from quota_ops.report.row_status import ReportRow

MARKER = "<!-- quota-ops review -->"
"""The first line of the comment, invisible, by which a later review finds it."""
GITHUB_LIMIT, GITLAB_LIMIT = 65_536, 1_000_000
"""The characters of a comment on GitHub, and of a note on GitLab."""
_FULL = 20
"""So many rows are one table; more are grouped by owner, after the riskiest."""
_RISKIEST = 10
_MOST_OTHERS = 50
_END = "\n</details>"
_LONGESTCUT = 120


def as_comment(review: Review, limit: int = GITHUB_LIMIT) -> str:
    """Return the comment in Markdown, at most `limit` characters long.

    Rows that do not fit are counted. Clusters that do not fit have their verdict only, and then
    their number.
    """
    head = [MARKER, f"**quota-ops · {summarize_review(review, code)}**{_commit(review)}"]
    head += [f"\n❌ {format_problem(one, review.links)}" for one in review.problems]
    shown = [one for one in review.clusters if one.own or one.error or one.is_removed]
    several = len(review.clusters) > 1
    room = limit - sum(len(one) + 1 for one in head) - _LONGESTCUT
    briefs = [f"\n{describe_verdict(one, code)}" for one in shown]
    later = sum(len(one) + 1 for one in briefs)
    parts: list[str] = []
    for one, brief in zip(shown, briefs, strict=True):
        later -= len(brief) + 1
        section = _section(one, review.links, max(room - max(later, 0), 0), alone=not several)
        text = section if len(section) + 1 <= room else brief
        if len(text) + 1 > room:
            parts.append(f"\n{CUT.format(counted(len(shown) - len(parts), 'cluster'))}")
            break
        parts.append(text)
        room -= len(text) + 1
    return "\n".join([*head, *filter(None, parts)]) + "\n"


def _commit(review: Review) -> str:
    head = f" · commit {code(short(review.head))}" if review.head else ""
    return f"{head} · compared with {code(short(review.base))}"


def _section(review: ClusterReview, links: Links | None, room: int, *, alone: bool) -> str:
    """Return the part of one cluster, at most `room` characters long if its lists can be cut."""
    lines = [] if alone else [f"\n### {describe_verdict(review, code)}"]
    rows = split_rows(review)
    after = list(list_paragraphs(review, links))
    room -= sum(len(one) + 1 for one in (*lines, *after))
    others = _others(review, rows.others, room // 4)
    room -= sum(len(one) + 1 for one in others)
    table = _changes(review, (*rows.written, *rows.unwritten), links, room)
    return "\n".join([*lines, *table, *after, *others])


def _changes(
    review: ClusterReview, rows: Sequence[ReportRow], links: Links | None, room: int
) -> list[str]:
    if not rows:
        return []
    head = table_head(review)
    if len(rows) <= _FULL:
        return _fit([*head, *row_lines(review, rows, links)], len(head), room)
    lines = [
        f"\nThe {_RISKIEST} riskiest of {counted(len(rows), 'change')}:",
        *head,
        *row_lines(review, rows[:_RISKIEST], links),
    ]
    room -= sum(len(one) + 1 for one in lines)
    listed = 0
    for owner, theirs in group_by_owner(rows):
        opening = f"\n<details><summary>{_owner_words(owner, theirs)}</summary>"
        least = len(opening) + len(_END) + sum(map(len, head)) + _LONGESTCUT
        if room < least:
            return [*lines, "", CUT.format(counted(len(rows) - listed, "change"))]
        body = _fit([*head, *row_lines(review, theirs, links)], len(head), room - least)
        lines += [opening, *body, _END]
        room -= sum(len(one) + 1 for one in (opening, *body, _END))
        listed += len(theirs)
    return lines


def _owner_words(owner: str, rows: Sequence[ReportRow]) -> str:
    kinds = Counter(row.difference.kind.replace("_", " ") for row in rows)
    each = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    name = f"<code>{escape(escape_text(owner))[:LONGEST]}</code>" if owner else "no owner"
    return f"{name}: {counted(len(rows), 'change')} ({each})"


def _fit(lines: Sequence[str], head: int, room: int) -> list[str]:
    """Return the lines that fit, and how many rows after the first `head` lines do not."""
    room -= _LONGESTCUT
    fit: list[str] = []
    for number, text in enumerate(lines):
        room -= len(text) + 1
        if room < 0:
            return [
                *(fit if number > head else []),
                "",
                CUT.format(f"{len(lines) - max(number, head):,}"),
            ]
        fit.append(text)
    return fit


def _others(review: ClusterReview, rows: Sequence[ReportRow], room: int) -> list[str]:
    """Return what differs for another reason than this branch, folded."""
    if not rows:
        return []
    number = counted(len(rows), "other difference")
    are = plural(len(rows), "is", "are")
    title = (
        f"{number} on <code>{escape(escape_text(review.cluster))}</code> {are} not of this branch"
    )
    lines = other_table(rows[:_MOST_OTHERS])
    left = len(rows) - _MOST_OTHERS
    more = ["", CUT.format(f"{left:,}")] if left > 0 else []
    return [
        f"\n<details><summary>{title}</summary>",
        *_fit(lines, 3, room),
        *more,
        _END,
    ]
