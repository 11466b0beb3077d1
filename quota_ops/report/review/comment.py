"""The comment of a pull request: what its branch changes, safe whatever names contain."""

from collections.abc import Sequence
from html import escape

from quota_ops.model.commit import short
from quota_ops.model.plans.plan import cuts_a_client
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.quota import QUOTA_KEYS, THREAD_KEY, format_limit
from quota_ops.model.runs.review import ClusterReview, Links, Review
from quota_ops.model.text import counted, plural
from quota_ops.report.markdown.parts import LONGEST, cell, change_row, code, format_who, owner_table
from quota_ops.report.outline import cells
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.formats import describe_uncommitted, escape_text, shortened
from quota_ops.report.outline.row_status import ReportRow
from quota_ops.report.outline.row_table import Fold, fold_profiles
from quota_ops.report.review.paragraphs import CUT, list_paragraphs, list_problems
from quota_ops.report.review.rows import (
    describe_verdict,
    find_place,
    is_shown,
    split_rows,
    summarize_review,
)

MARKER = "<!-- quota-ops review -->"
"""The first line of the comment, invisible, by which a later review finds it."""
GITHUB_LIMIT, GITLAB_LIMIT = 65_536, 1_000_000
"""The characters of a comment on GitHub, and of a note on GitLab."""
_FULL = 20
"""So many rows are one table; more are grouped by owner, after the riskiest."""
_RISKIEST = 10
_MOST_OWNERS = 50
_LEAST = 1_000
"""The room for which it is worth to begin another list."""
_MOST_OTHERS = 50
_END = "\n</details>"
_LONGEST_CUT = 120


def as_comment(review: Review, limit: int = GITHUB_LIMIT) -> str:
    """Return the comment in Markdown, at most `limit` characters long.

    Rows that do not fit are counted. Clusters that do not fit have their verdict only, and then
    their number.
    """
    head = [MARKER, f"**quota-ops · {summarize_review(review, code)}**{_commit(review)}"]
    head += list_problems(review.problems, review.links)
    shown = [cluster for cluster in review.clusters if is_shown(cluster)]
    several = len(review.clusters) > 1
    room = limit - sum(len(text) + 1 for text in head) - _LONGEST_CUT
    briefs = [f"\n{describe_verdict(cluster, code)}" for cluster in shown]
    later = sum(len(brief) + 1 for brief in briefs)
    parts: list[str] = []
    for cluster, brief in zip(shown, briefs, strict=True):
        later -= len(brief) + 1
        share = (room - later) // (len(shown) - len(parts))
        section = _section(cluster, review.links, max(share, 0), alone=not several)
        text = section if len(section) + 1 <= room - later else brief
        if len(text) + 1 > room:
            parts.append(f"\n{CUT.format(counted(len(shown) - len(parts), 'more cluster'))}")
            break
        parts.append(text)
        room -= len(text) + 1
    return "\n".join([*head, *filter(None, parts)]) + "\n"


def as_failure(error: str, head: str | None) -> str:
    """Return the comment of a review that failed, so that none of an earlier commit stays."""
    lines = [text.strip() for text in error.strip().split("\n")]
    commit = f" · commit {code(short(head))}" if head else ""
    return (
        f"{MARKER}\n**quota-ops · ❌ the review failed**{commit}\n\n{'<br>'.join(map(code, lines))}"
        "\n\nNothing is known about the changes of this commit.\n"
    )


def _commit(review: Review) -> str:
    compared = f" · compared with {code(short(review.base))}"
    for cluster in review.clusters:
        if cluster.report and cluster.report.provenance.uncommitted:
            return f" · {describe_uncommitted(cluster.report.provenance, code)}{compared}"
    return f" · commit {code(short(review.head))}{compared}" if review.head else compared


def _section(review: ClusterReview, links: Links | None, room: int, *, alone: bool) -> str:
    """Return the part of one cluster, at most `room` characters long if its lists can be cut."""
    lines = [] if alone else [f"\n### {describe_verdict(review, code)}"]
    rows = split_rows(review)
    after = list(list_paragraphs(review, links))
    room -= sum(len(text) + 1 for text in (*lines, *after))
    others = _others(review, rows.others, room // 4)
    room -= sum(len(text) + 1 for text in others)
    table = _changes(review, (*rows.written, *rows.unwritten), links, room)
    return "\n".join([*lines, *table, *after, *others])


def _changes(
    review: ClusterReview, rows: Sequence[ReportRow], links: Links | None, room: int
) -> list[str]:
    folds, rows = fold_profiles(rows)
    lines = [_fold_line(fold) for fold in folds]
    room -= sum(len(text) + 1 for text in lines)
    return [*lines, *_list_rows(review, rows, links, room)]


def _fold_line(fold: Fold) -> str:
    first = fold.rows[0]
    values = f"{cells.current(first)} → **{cells.desired(first)}**"
    return f"\n{code(fold.profile)}: {first.difference.key} {values} for {fold.list_entities(cell)}"


def _list_rows(
    review: ClusterReview, rows: Sequence[ReportRow], links: Links | None, room: int
) -> list[str]:
    if not rows:
        return []
    head = table_head(review)
    if len(rows) <= _FULL:
        return _fit([*head, *(_row(review, row, links) for row in rows)], len(head), room)
    lines = [
        *owner_table(rows, ("removed", "cut", "raised", "new"), _count_as, _MOST_OWNERS),
        f"\nThe {_RISKIEST} riskiest of {counted(len(rows), 'change')}:",
        *head,
        *(_row(review, row, links) for row in rows[:_RISKIEST]),
        "\nAll changes by owner:",
    ]
    room -= sum(len(line) + 1 for line in lines) + _LONGEST_CUT
    left = len(rows)
    for owner, theirs in group_by_owner(rows):
        title = f"{as_html_code(owner)}: {counted(len(theirs), 'change')}"
        opening = f"\n<details><summary>{title}</summary>"
        inside = room - len(opening) - len(_END) - 2
        if inside < _LEAST:
            return [*lines, *_list_cut(left, "more change")]
        own = (_row(review, row, links) for row in theirs)
        body = _fit([*head, *own], len(head), inside)
        lines += [opening, *body, _END]
        room -= sum(len(text) + 1 for text in (opening, *body, _END))
        left -= len(theirs)
    return lines


def _fit(lines: Sequence[str], head: int, room: int) -> list[str]:
    """Return the lines that fit, and how many rows after the first `head` lines do not."""
    if sum(len(line) + 1 for line in lines) <= room:
        return list(lines)
    room -= _LONGEST_CUT
    fit = 0
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fit += 1
    left = len(lines) - max(fit, head)
    return [*(lines[:fit] if fit > head else []), *_list_cut(left, "more row")]


def _list_cut(number: int, noun: str) -> list[str]:
    """Return a paragraph with how many are left out; nothing for none."""
    return ["", CUT.format(counted(number, noun))] if number > 0 else []


def _others(review: ClusterReview, rows: Sequence[ReportRow], room: int) -> list[str]:
    """Return the differences that this branch does not cause, folded."""
    if not rows:
        return []
    number = counted(len(rows), "other difference")
    are = plural(len(rows), "is", "are")
    title = f"{number} on {as_html_code(review.cluster)} {are} not from this branch"
    lines = other_table(rows[:_MOST_OTHERS])
    return [
        f"\n<details><summary>{title}</summary>",
        *_fit(lines, 3, room),
        *_list_cut(len(rows) - _MOST_OTHERS, "more difference"),
        _END,
    ]


_PLAIN = frozenset({Kind.PENDING, Kind.REMOVED})
"""Kinds that the values show."""


def table_head(review: ClusterReview) -> list[str]:
    """Return the heading of a table of changes."""
    heading = f"| | who | quota | {review.compared_with} → desired | owner, source, reason |"
    return ["", heading, "|-|-|-|-|-|"]


def _row(review: ClusterReview, row: ReportRow, links: Links | None) -> str:
    difference = row.difference
    words = (
        _total(row, review.brokers),
        *map(cell, effect_parts(row)),
        cell(_kind(row)),
        cell(cells.trouble(row) or cells.held(row) or cells.left_alone(row) or _stays(row)),
    )
    source = (
        _owner(review, row, links),
        cell(difference.derivation or ""),
        cell(difference.reason or ""),
    )
    return change_row(row, words, source, "<br>")


def _total(row: ReportRow, brokers: int) -> str:
    """Return what all brokers together allow; empty for one broker, or a limit of another kind."""
    target, key = row.difference.target, row.difference.key
    known = QUOTA_KEYS.get(key)
    if brokers < 2 or known is None or target is None:  # noqa: PLR2004 - a total of one
        return ""
    if known.by_controller or key == THREAD_KEY or target >= known.unlimited:
        return ""
    return f"at most {format_limit(key, target * brokers)} on {counted(brokers, 'broker')}"


def _kind(row: ReportRow) -> str:
    kind = row.difference.kind
    if kind in _PLAIN or row.difference.action is Action.HELD:
        return ""
    return f"{cells.kind(row)}: {cells.KIND_MEANING[kind]}"


def _stays(row: ReportRow) -> str:
    """Return why an undeclared value stays on the cluster; empty for others."""
    is_unmanaged = row.difference.kind in {Kind.UNMANAGED, Kind.OVERRIDING}
    if is_unmanaged and row.difference.action is Action.REPORT:
        return "stays on the cluster: quota-ops does not manage it"
    return ""


def _owner(review: ClusterReview, row: ReportRow, links: Links | None) -> str:
    place = find_place(review, row)
    owner = cell(row.difference.owner or "")
    if place is None:
        return owner
    path, line, at_base = place
    shown = cell(f"{path.rpartition('/')[2]}{f':{line}' if line else ''}")
    if links:
        shown = f"[{shown}]({links.find_line(path, line, at_base=at_base)})"
    return f"{owner} {'was ' if at_base else ''}{shown}".strip()


def group_by_owner(rows: Sequence[ReportRow]) -> list[tuple[str, list[ReportRow]]]:
    """Return the rows of each owner, the owner with the most rows first; empty for no owner."""
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(row.difference.owner or "", []).append(row)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))


def _count_as(row: ReportRow) -> str:
    difference = row.difference
    if difference.action is Action.CLEAR:
        return "removed"
    if difference.target is None:
        return ""
    if cuts_a_client(difference, row.effect):
        return "cut"
    return "new" if difference.before is None else "raised"


def as_html_code(text: str) -> str:
    """Return a text for a summary, in which Markdown is not read; `no owner` if it is empty."""
    return f"<code>{escape(shortened(escape_text(text), LONGEST))}</code>" if text else "no owner"


def other_table(rows: Sequence[ReportRow]) -> list[str]:
    """Return a table of differences that do not come from the branch."""
    head = ["", "| who | quota | current → Git | kind |", "|-|-|-|-|"]
    return [
        *head,
        *(
            f"| {format_who(row)} | {cell(row.difference.key)} | {cells.current(row)} → "
            f"{format_limit(row.difference.key, row.difference.after)} | {cell(cells.kind(row))} |"
            for row in rows
        ),
    ]
