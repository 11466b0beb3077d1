"""The paragraphs below the changes of a cluster: what they need, and what is wrong."""

from collections.abc import Iterator, Sequence

from quota_ops.model.finding import Problem
from quota_ops.model.plans.guard import Guard, GuardFinding, format_override
from quota_ops.model.plans.plan import SHORT
from quota_ops.model.plans.policy import ApprovalPolicy
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.review import ClusterReview, Later, LaterChange, Links
from quota_ops.model.text import counted, name_first, plural
from quota_ops.report.markdown.parts import code, findings_heading, format_block
from quota_ops.report.outline import cells, sentences
from quota_ops.report.outline.findings import FEW
from quota_ops.report.outline.formats import moment
from quota_ops.report.outline.outline import Topic, list_blocks
from quota_ops.report.outline.policy_changes import format_changes
from quota_ops.report.outline.row_status import ReportRow
from quota_ops.report.review.rows import (
    UNJUDGED,
    ReviewRows,
    count_rejected,
    find_place,
    list_policy_changes,
    split_rows,
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
    yield from _findings(review, links)
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
    lines = [text.strip() for text in str(review.error).split("\n")]
    yield f"\n❌ {'<br>'.join(map(code, lines[:_MOST_LINES]))}"


def _unjudged(review: ClusterReview) -> Iterator[str]:
    """Yield why there is no verdict, and what the table shows nevertheless."""
    for reason in review.unjudged:
        lines = [line.strip() for line in reason.detail.split("\n")][:_MOST_LINES]
        detail = f": {'<br>'.join(map(code, lines))}" if reason.detail else "."
        yield f"\n{UNJUDGED} Cannot judge, because {reason.what}{detail}"
        yield from (f"<br>{code(reason.remedy)}",) if reason.remedy else ()
    if review.base and review.base.invalid and review.own:
        yield "\nEach difference from the cluster counts as a change of this branch."


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
        f"\n‖ {code(words)}"
        for hold, words in zip(plan.holds, sentences.describe_holds(report), strict=True)
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
        is_never = plan.policy.approval is ApprovalPolicy.NEVER
        way = "set the params allow and reason in" if is_never else "approve the plan in CI or"
        yield f"\nAfter the merge, {way} Airflow, or run {command}."
    effects = Topic.VALIDATION, Topic.CLIENTS, Topic.THROTTLING
    yield from (
        format_block(block) for block in list_blocks(report, code) if block.topic in effects
    )
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


def _findings(review: ClusterReview, links: Links | None) -> Iterator[str]:
    found = review.findings
    if found:
        yield findings_heading(counted(len(found), "new finding"))
    for finding in found[:FEW]:
        where = code(finding.where)
        if links and finding.place:
            file = f"{review.folder}/{finding.place.file}"
            where = f"[{where}]({links.find_line(file, finding.place.line)})"
        yield f"- {finding.code} {where}: {code(finding.message)} {code(finding.remedy)}"
    if found[FEW:]:
        yield f"- {CUT.format(counted(len(found) - FEW, 'more finding'))}"
