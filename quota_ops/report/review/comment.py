"""The comment of a pull request: what its branch changes, safe whatever names contain."""

from collections.abc import Iterator, Sequence
from html import escape

from quota_ops.model.commit import short
from quota_ops.model.finding import Finding, Problem
from quota_ops.model.plans.guard import Guard, GuardFinding, format_override
from quota_ops.model.plans.plan import SHORT, cuts_a_client
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, THREAD_KEY, format_limit
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.review import ClusterReview, Later, LaterChange, Links, Review
from quota_ops.model.text import counted, name_first, plural
from quota_ops.report.markdown.parts import (
    LONGEST,
    cell,
    change_row,
    code,
    findings_heading,
    format_block,
    format_who,
    owner_table,
)
from quota_ops.report.outline import cells, sentences
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.findings import FEW
from quota_ops.report.outline.formats import describe_uncommitted, escape_text, moment, shortened
from quota_ops.report.outline.outline import IN_REVIEW, list_blocks
from quota_ops.report.outline.policy_changes import format_changes
from quota_ops.report.outline.row_status import ReportRow
from quota_ops.report.outline.row_table import Fold, fold_profiles
from quota_ops.report.review.rows import ReviewRows, find_place, split_rows
from quota_ops.report.review.verdict import (
    UNJUDGED,
    count_rejected,
    describe_verdict,
    is_shown,
    list_policy_changes,
    summarize_review,
)

CUT = "… and {}; the report in the artifacts of this job lists all of them."
_MOST_PROBLEMS, _MOST_LINES = 20, 6


def list_paragraphs(review: ClusterReview, links: Links | None) -> Iterator[str]:
    """Yield the lines below the table of a cluster."""
    yield from _removed(review)
    yield from list_problems(review.problems, links, review.unlisted)
    yield from _error(review)
    yield from _unjudged(review)
    yield from _settings(review)
    yield from _owners(review)
    yield from _later(review)
    yield from _stored(split_rows(review))
    yield from _merged(split_rows(review))
    yield from _overriding(review)
    yield from _needs(review)
    yield from _findings(review, links, "new", review.findings)
    yield from _findings(review, links, "earlier", review.earlier_findings)
    yield from _notes(review)


def _problem(problem: Problem, links: Links | None) -> str:
    where = f"{problem.file}:{problem.line}:{problem.column}"
    place = code(where)
    if links:
        place = f"[{place}]({links.find_line(problem.file, problem.line)})"
    remedy = f" {code(problem.remedy)}" if problem.remedy else ""
    return f"{place} {code(problem.message)}{remedy}"


def list_problems(
    problems: Sequence[Problem], links: Links | None, unlisted: int = 0
) -> Iterator[str]:
    """Yield a list of problems; `unlisted` is how many further ones there are."""
    if problems:
        yield ""
    for problem in problems[:_MOST_PROBLEMS]:
        yield f"- ❌ {_problem(problem, links)}"
    if (left := len(problems[_MOST_PROBLEMS:]) + unlisted) > 0:
        yield f"- {CUT.format(counted(left, 'more problem'))}"


def _removed(review: ClusterReview) -> Iterator[str]:
    if review.is_removed and review.base:
        number = len(review.base.rows)
        kept = "Its quotas" if review.base.invalid else f"Its {counted(number, 'quota')}"
        stay, them = plural(number, "stays", "stay"), plural(number, "it", "them")
        yield (
            f"\n⚠️ The folder {code(review.folder)} is removed: quota-ops stops managing this "
            f"cluster. {kept} {stay} on the cluster. To clear {them}, remove the "
            f"{plural(number, 'quota')} first and the folder later."
        )


def _error(review: ClusterReview) -> Iterator[str]:
    if review.error is None or review.problems or count_rejected(review):
        return  # the table has the broker's reasons
    yield f"\n❌ {_code_lines(str(review.error), _MOST_LINES)}"


def _unjudged(review: ClusterReview) -> Iterator[str]:
    """Yield why there is no verdict, and what the table shows nevertheless."""
    for reason in review.unjudged:
        detail = f": {_code_lines(reason.detail, _MOST_LINES)}" if reason.detail else "."
        yield f"\n{UNJUDGED} Cannot judge, because {reason.what}{detail}"
        yield from (f"<br>{_code_lines(reason.remedy)}",) if reason.remedy else ()
    if review.base and review.base.invalid and review.own:
        yield "\nEach difference from the cluster counts as a change of this branch."


def _code_lines(text: str, most: int | None = None) -> str:
    """Return a code span for each line of a text: one span would show escaped line ends."""
    return "<br>".join(code(line.strip()) for line in text.split("\n")[:most])


def _owners(review: ClusterReview) -> Iterator[str]:
    plan = review.report.plan if review.report else None
    yield from (
        f"\n⚠️ {code(words)}"
        for words in sentences.describe_owner_changes(review.owner_changes, plan)
    )


def _later(review: ClusterReview) -> Iterator[str]:
    """Yield what the branch changes from a time on, and when the guards judge that.

    What a temporary value returns to is judged with this value, if that is written now.
    """
    plan = review.report and review.report.plan
    written = {row.id for row in plan.writes if row.returns_to is not None} if plan else set()
    now = [change for change in review.later_changes if change[:2] in written]
    later = [change for change in review.later_changes if change[:2] not in written]
    yield from _list_later("The guards that compare limits judge it now, and not again", now)
    yield from _list_later("The guards judge it when that time has come", later)


def _list_later(judged: str, changes: Sequence[LaterChange]) -> Iterator[str]:
    if changes:
        yield f"\nWhat this branch changes later. {judged}:\n"
    for change in changes[:_MOST_PROBLEMS]:
        now = format_limit(change.key, change.value)
        whole = " for the whole cluster" if change.is_whole else ""
        after, before = map(_format_later, (change.after, change.before))
        named = code(f"{change.entity} {change.key}")
        yield f"- {named}{whole}: {now}, {after} (merge base: {before})"
    if left := len(changes[_MOST_PROBLEMS:]):
        yield f"- {CUT.format(counted(left, 'more later change'))}"


def _format_later(later: Later | None) -> str:
    return f"from {moment(later.until)} **{code(later.words)}**" if later else "no later change"


def _notes(review: ClusterReview) -> Iterator[str]:
    if review.earlier_name:
        yield (
            f"\nThe folder of this cluster was {code(review.earlier_name)} before. Its DAG, runs, "
            "history and metrics start over under the new name; its quotas and its ledger stay."
        )
    yield from (f"\n{note}" for note in review.notes)


def _stored(rows: ReviewRows) -> Iterator[str]:
    if rows.stored:
        yield f"\nAlready on the cluster: {_name_keys(rows.stored)}."
    if rows.absent:
        yield f"\nAlready absent from the cluster: {_name_keys(rows.absent)}."


def _merged(rows: ReviewRows) -> Iterator[str]:
    if rows.merged:
        named = _name_keys([row.difference.id for row in rows.merged])
        yield (
            f"\nMerged since this branch began, and on the cluster already: {named}. "
            "This branch does not revert that."
        )


def _overriding(review: ClusterReview) -> Iterator[str]:
    """Yield which clients do not get what Git declares, because of unmanaged quotas.

    Either this branch declares it, or it accepts such quotas: it protects them.
    """
    rows = split_rows(review)
    yield from _list_overriding(
        "Unmanaged quotas on the cluster come first, so these clients do not get what this branch "
        "declares. `quota-ops accept` brings such a quota into Git; `quota-ops alter` removes it.",
        rows.overriding,
    )
    yield from _list_overriding(
        "This branch protects quotas that come before quotas of Git: once it is applied, they are "
        "accepted, and no longer called overriding.",
        rows.accepted,
    )


def _list_overriding(heading: str, rows: Sequence[ReportRow]) -> Iterator[str]:
    if rows:
        yield f"\n⚠️ {heading}\n"
    for row in rows[:FEW]:
        yield f"- {code(cells.overriding(row))}"
    if rows[FEW:]:
        yield f"- {CUT.format(counted(len(rows) - FEW, 'more quota'))}"


def _name_keys(keys: Sequence[Key]) -> str:
    return name_first(map(" ".join, keys), FEW, code)


def _settings(review: ClusterReview) -> Iterator[str]:
    changes = list_policy_changes(review)
    if changes:
        yield f"\n**{code(f'{review.folder}/cluster.yaml')}** changes\n"
    yield from (f"- {change}" for change in format_changes(changes, code))


def _needs(review: ClusterReview) -> Iterator[str]:
    report = review.report
    plan = report.plan if report else None
    if report is None or plan is None:
        return
    if stopped := sentences.describe_standstill(plan):
        yield f"\n⚠️ {code(stopped)}"
    rows = split_rows(review)
    names = {row.difference.entity for row in (*rows.written, *rows.unwritten)}
    concerned = [Entity.parse(name) for name in names] if plan.holds else []
    yield from (
        f"\n‖ {code(f'{hold.who.text} is {hold.text}')}"
        for hold in plan.holds
        if any(map(hold.who.accepts, concerned))
    )
    if plan.guards:
        number = len(review.blocking)
        blocking = f"{counted(number, 'guard')} {plural(number, 'blocks', 'block')}"
        yield f"\n**{'Needs approval' if review.guards else 'Approved'}**: {blocking}.\n"
    for guard in plan.guards:
        way = f". {_FOREIGN_WAY}" if guard.guard == Guard.FOREIGN_OWNER else ""
        yield f"- ⚠️ {code(guard.guard)}: {code(guard.message)}{_list_places(review, guard)}{way}"
    if review.guards:
        options = format_override(*review.blocking)
        command = code(f"quota-ops reconcile {review.cluster} {options}")
        way = "approve the plan in CI or"
        if not plan.can_be_approved:
            way = "set the params allow and reason in"
        yield f"\nAfter the merge, {way} Airflow, or run {command}."
    blocks = list_blocks(report, code)
    yield from (format_block(block) for block in blocks if block.topic in IN_REVIEW)
    if words := sentences.describe_callback(report.facts, code):
        yield f"\n⚠️ {words}"
    is_alone = not (rows.others or rows.merged or review.has_target_changed or review.unjudged)
    if plan.writes and plan.ledger and is_alone:
        yield (
            f"\nPlan {code(plan.digest[:SHORT])}. The plan after the merge has the same digest if "
            "nothing else changes."
        )


_FOREIGN_WAY = (
    "Ask the other owner to declare it, or list the entity under your owner in `owners` of "
    "`cluster.yaml`."
)


def _list_places(review: ClusterReview, guard: GuardFinding) -> str:
    """Return where the rows that a guard found are declared: up to three places."""
    places = [
        f"{place[0]}:{place[1]}"
        for row in split_rows(review).written
        if guard.guard in (*row.guards, *row.overridden)
        if (place := find_place(review, row)) and not place[2]
    ]
    return f" ({name_first(places, _PLACES, code)})" if places else ""


_PLACES = 3


def _findings(
    review: ClusterReview, links: Links | None, when: str, found: Sequence[Finding]
) -> Iterator[str]:
    if found:
        yield findings_heading(counted(len(found), f"{when} finding"))
    for finding in found[:FEW]:
        where = code(finding.where)
        if links and finding.place:
            file = f"{review.folder}/{finding.place.file}"
            where = f"[{where}]({links.find_line(file, finding.place.line)})"
        yield f"- {finding.code} {where}: {code(finding.message)} {code(finding.remedy)}"
    if found[FEW:]:
        yield f"- {CUT.format(counted(len(found) - FEW, 'more finding'))}"


MARKER = "<!-- quota-ops review -->"
"""The first line of the comment, invisible, by which a later review finds it."""
GITHUB_LIMIT, GITLAB_LIMIT = 65_536, 1_000_000
"""The characters of a comment on GitHub, and of a note on GitLab."""
_FULL = 20
"""So many rows are one table; more are grouped by owner, after the riskiest."""
_RISKIEST = 10
_MOST_OWNERS = 50
_SHORTEST_ROW = 100
"""About how many characters a row takes at least."""
_MOST_OTHERS = 50
_END = "\n</details>"
_LONGEST_CUT = 120


def as_comment(review: Review, limit: int = GITHUB_LIMIT) -> str:
    """Return the comment in Markdown, at most `limit` characters long.

    Each cluster lists as many rows as fit, and counts the others. Clusters that do not fit have
    their verdict only, and then their number.
    """
    head = [MARKER, f"**quota-ops · {summarize_review(review, code)}**{_commit(review)}"]
    head += list_problems(review.problems, review.links)
    head += [f"\n⚠️ {note}" for note in review.notes]
    shown = [cluster for cluster in review.clusters if is_shown(cluster)]
    alone = len(review.clusters) == 1
    sections, most = list[str](), max(limit // _SHORTEST_ROW // max(len(shown), 1), 1)
    while most:
        sections = [_section(cluster, review.links, most, alone=alone) for cluster in shown]
        comment = "\n".join([*head, *filter(None, sections)]) + "\n"
        if len(comment) <= limit:
            return comment
        most = most * 2 // 3
    room = limit - sum(len(text) + 1 for text in head) - _LONGEST_CUT
    return "\n".join([*head, *_list_fitting(shown, sections, room)]) + "\n"


def _list_fitting(
    shown: Sequence[ClusterReview], sections: Sequence[str], room: int
) -> Iterator[str]:
    """Yield the sections that fit beside the verdicts of later clusters, or else the verdicts."""
    briefs = [f"\n{describe_verdict(cluster, code)}" for cluster in shown]
    later = sum(len(brief) + 1 for brief in briefs)
    for number, (section, brief) in enumerate(zip(sections, briefs, strict=True)):
        later -= len(brief) + 1
        text = section if len(section) + 1 <= room - later else brief
        room -= len(text) + 1
        if room < 0:
            yield from _list_cut(len(shown) - number, "more cluster")
            return
        yield text


def as_failure(error: str, head: str | None) -> str:
    """Return the comment of a review that failed, so that none of an earlier commit stays."""
    commit = f" · commit {code(short(head))}" if head else ""
    return (
        f"{MARKER}\n**quota-ops · ❌ the review failed**{commit}\n\n{_code_lines(error.strip())}"
        "\n\nNothing is known about the changes of this commit.\n"
    )


def _commit(review: Review) -> str:
    compared = f" · compared with {code(short(review.base))}"
    for cluster in review.clusters:
        if cluster.report and cluster.report.provenance.uncommitted:
            return f" · {describe_uncommitted(cluster.report.provenance, code)}{compared}"
    return f" · commit {code(short(review.head))}{compared}" if review.head else compared


def _section(review: ClusterReview, links: Links | None, most: int, *, alone: bool) -> str:
    """Return the part of one cluster, with at most so many rows in each of its lists."""
    rows = split_rows(review)
    folds, changes = fold_profiles((*rows.written, *rows.unwritten))
    lines = [
        *([] if alone else [f"\n### {describe_verdict(review, code)}"]),
        *map(_fold_line, folds),
        *_list_rows(review, changes, links, most),
        *list_paragraphs(review, links),
        *_others(review, rows.others, min(most, _MOST_OTHERS)),
    ]
    return "\n".join(lines)


def _fold_line(fold: Fold) -> str:
    first = fold.rows[0]
    values = f"{cells.current(first)} → **{cells.desired(first)}**"
    return f"\n{code(fold.profile)}: {first.difference.key} {values} for {fold.list_entities(cell)}"


def _list_rows(
    review: ClusterReview, rows: Sequence[ReportRow], links: Links | None, most: int
) -> Iterator[str]:
    if not rows:
        return
    head, left = table_head(review), len(rows) - most
    first = rows[:most]
    if len(rows) > _FULL:
        yield from owner_table(rows, ("removed", "cut", "raised", "new"), _count_as, _MOST_OWNERS)
        first = rows[: min(most, _RISKIEST)]
        yield f"\nThe {len(first)} riskiest of {counted(len(rows), 'change')}:"
    yield from (*head, *(_row(review, row, links) for row in first))
    if len(rows) > _FULL:
        yield "\nAll changes by owner:"
        for owner, theirs in group_by_owner(rows):
            title = f"{as_html_code(owner)}: {counted(len(theirs), 'change')}"
            listed = (_row(review, row, links) for row in theirs[:most])
            if most:
                yield from (f"\n<details><summary>{title}</summary>", *head, *listed, _END)
            most -= len(theirs[:most])
    yield from _list_cut(left, "more row")


def _list_cut(number: int, noun: str) -> list[str]:
    """Return a paragraph with how many are left out; nothing for none."""
    return ["", CUT.format(counted(number, noun))] if number > 0 else []


def _others(review: ClusterReview, rows: Sequence[ReportRow], most: int) -> list[str]:
    """Return the differences that this branch does not cause, folded."""
    if not rows:
        return []
    number = counted(len(rows), "other difference")
    are = plural(len(rows), "is", "are")
    title = f"{number} on {as_html_code(review.cluster)} {are} not from this branch"
    return [
        f"\n<details><summary>{title}</summary>",
        *other_table(rows[:most]),
        *_list_cut(len(rows) - most, "more difference"),
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
