"""The form that asks a person to approve a plan: a title, and Markdown that is safe to render."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter

from quota_ops.model.commit import named, short
from quota_ops.model.plans.plan import SHORT, Plan
from quota_ops.model.quotas.difference import WRITES, Kind
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted
from quota_ops.report.markdown.parts import (
    code,
    commit_part,
    format_block,
    owner_table,
    table_lines,
)
from quota_ops.report.outline import cells, formats, outline, policy_changes, sentences, summary
from quota_ops.report.outline.commands import format_accept_options, format_names, list_ways
from quota_ops.report.outline.effects import NO_EFFECT, effect_parts
from quota_ops.report.outline.past import describe_past, find_since
from quota_ops.report.outline.row_status import ReportRow, RowStatus, report_rows

MOST_ROWS = 10
"""How many changes the form lists; the report has them all."""
MOST_OWNERS = 12
MOST_COMMITS = 6
MOST_OVERRIDING = MOST_WARNINGS = 5
_NO_INVENTORY = "Which clients use these quotas is unknown: there is no inventory."


def format_subject(report: Report, plan: Plan) -> str:
    """Return the title: the cluster, the plan, and the number of its changes."""
    what = f"plan {plan.digest[:SHORT]} ({counted(len(plan.writes), 'change')})"
    return f"{formats.escape_text(report.cluster)}: apply {what}?"


def format_body(report: Report, plan: Plan, until: datetime, page: str) -> str:
    """Return the plan, its riskiest changes, and why it needs approval.

    Many changes are counted by owner and kind. `until` is when the request times out, and `page`
    the link to the report of the plan, or its place.
    """
    rows = _put_each_guard_first(
        [row for row in report_rows(report) if row.difference.action in WRITES]
    )
    commit = commit_part(report.provenance)
    changes = counted(len(rows), "change")
    blocks = list(outline.list_blocks(report, code))
    warned = [block for block in blocks if block.topic is outline.Topic.WARNING]
    link = f"[{changes} in the report](<{page}>)" if "://" in page else f"The report: {code(page)}"
    head = [
        f"**{changes} on {code(report.cluster)}** ({code(plan.policy.cluster_id)}){commit}",
        f"\nPlan {code(plan.digest)} · {link}",
        *(format_block(block) for block in blocks if block.topic in outline.ABOVE_APPROVAL),
        *([] if report.clients else [f"\n{_NO_INVENTORY}"]),
        "",
        *_format_reasons(report, plan),
        *map(format_block, warned[:MOST_WARNINGS]),
        *_describe_end(report),
        *_format_commits(report),
        *_format_overriding(report),
    ]
    if rows[MOST_ROWS:]:
        present = {row.difference.kind for row in rows}
        kinds = [kind for kind in Kind if kind in present]
        head += owner_table(rows, kinds, attrgetter("difference.kind"), MOST_OWNERS)
        head += [f"\nThe {MOST_ROWS} riskiest of them:"]
    throttling = [block for block in blocks if block.topic is outline.Topic.THROTTLING]
    tail = [*map(format_block, throttling), "", *_format_choices(report, plan, rows, until)]
    describe = partial(_describe_row, report, set())
    table = table_lines(rows[:MOST_ROWS], describe)
    return "\n".join([*head, *table, *tail]) + "\n"


def _put_each_guard_first(rows: list[ReportRow]) -> list[ReportRow]:
    """Return the rows with the riskiest one of each guard before all others."""
    first: dict[str, ReportRow] = {}
    for row in rows:
        for guard in row.guards:
            first.setdefault(guard, row)
    ids = {row.difference.id for row in first.values()}
    return sorted(rows, key=lambda row: row.difference.id not in ids)


def _describe_row(report: Report, shown: set[str], row: ReportRow) -> list[str]:
    """Return which guards block a row, who changed it outside Git, and effects not yet shown."""
    words = ["written already, by this run"] if row.was_written else []
    words += [f"blocked by {', '.join(row.guards)}"] if row.guards else []
    if row.difference.is_drift:
        since = find_since(row, report.past).removeprefix("unknown")
        past = describe_past(row, report.past, report.started)
        words.append(" ".join([f"changed outside Git {since}".strip() + ".", *past]))
    effects = effect_parts(row)
    words += [part for part in effects if part not in shown]
    if not shown.isdisjoint(effects):
        words.append("other effects as in a row above")
    shown.update(part for part in effects if part != NO_EFFECT)
    return words


def _format_overriding(report: Report) -> Iterator[str]:
    """Yield which clients do not get what Git declares, whether the plan is applied or not."""
    rows = [row for row in report_rows(report) if row.status is RowStatus.OVERRIDING]
    if not rows:
        return
    words = summary.describe_overriding(code(report.cluster), report)
    yield f"\n⚠ **{words}.** This plan does not change it:\n"
    for row in rows[:MOST_OVERRIDING]:
        named = f"{code(row.difference.entity)} {row.difference.key}"
        yield f"- {named}: {code(cells.overriding(row))}"
    if (more := len(rows) - MOST_OVERRIDING) > 0:
        yield f"- and {more:,} more"


def _format_commits(report: Report) -> Iterator[str]:
    """Yield who changed the files since the last applied commit, and how they explain it."""
    changes = report.changes
    if changes is None or report.commit is None:
        return
    if changes.since is None:
        last, which = "No commit has been applied to this cluster before.", "of its files"
    else:
        page = report.repository and report.repository.find_comparison(changes.since, report.commit)
        link = f" ([compare](<{page}>))" if page else ""
        last, which = f"{code(named(changes.since))} was applied last{link}.", "since then"
    if changes.failure:
        yield f"\n{last} The commits {which} are not known: {code(changes.failure)}."
        return
    if not changes.commits:
        yield f"\n{last} No commit since then changes the files of this cluster."
        return
    yield f"\n{last} {counted(changes.total, 'commit')} {which}:\n"
    for commit in changes.commits[:MOST_COMMITS]:
        yield f"- {code(short(commit.id))} {code(commit.subject)} by {code(commit.author)}"
    if (more := changes.total - MOST_COMMITS) > 0:
        yield f"- and {more:,} more"


def _format_reasons(report: Report, plan: Plan) -> Iterator[str]:
    """Yield each reason why the plan needs approval, as a list item."""
    if not plan.refused:
        yield f"- cluster.yaml sets `approval: {plan.policy.approval}`."
    for guard in plan.refused:
        yield f"- ⚠ **{guard.guard}**: {code(guard.message)}"
        yield from (f"  - {change}" for change in outline.list_settings(plan, guard, code))
    for guard in plan.guards:
        if guard.allowed is not None:
            yield f"- {guard.guard}: {code(guard.message)}. Overridden: {code(guard.allowed)}"
    if words := sentences.describe_repairs(report, code):
        yield f"- {words} All are among the changes below, and no change is written twice."
    if words := sentences.describe_lost_ledger(report):
        yield f"- {words}"


def _format_choices(
    report: Report, plan: Plan, rows: Sequence[ReportRow], until: datetime
) -> Iterator[str]:
    """Yield a paragraph with what happens after each decision."""
    left = [row for row in rows if not row.was_written]
    what = "these changes"
    if left != list(rows):
        what = f"the {counted(len(left), 'change')} that this run has not written yet"
    does = [f"writes exactly {what}"]
    if drifted := [row for row in left if row.difference.is_drift]:
        does.append(f"overwrites {counted(len(drifted), 'change')} made outside Git")
    if owned := sum(len(change.entities) for change in report.owner_changes):
        does.append(f"gives {counted(owned, 'entity')} another owner")
    if settings := policy_changes.compare_policies(plan.applied_policy, plan.policy):
        does.append("applies the changed settings of cluster.yaml")
    all_of_it = " and ".join(filter(None, (", ".join(does[:-1]), does[-1])))
    yield (
        f"**Approve** {all_of_it}. A row that changes in the meantime is skipped, and the run "
        "fails; if another run writes to the cluster in the meantime, nothing is written.\n"
    )
    nothing = "nothing more" if plan.repairs else "nothing"
    stay = " and ".join(filter(None, ("owners" if owned else "", "settings" if settings else "")))
    stays = f", and {stay} stay as last applied" if stay else ""
    keep = f" {_format_way_to_keep(report, drifted[0])}" if drifted else ""
    yield (
        f"**Reject**, or no decision until {until:%Y-%m-%d %H:%M} UTC, writes {nothing}{stays}."
        f"{keep}"
    )


def _describe_end(report: Report) -> Iterator[str]:
    """Yield why the run fails at verify even if all changes are written."""
    absent = report.metadata.absent if report.metadata else ()
    silent = [broker for broker in absent if broker.retired is None]
    if silent:
        yield (
            "\n⚠ **If you approve, the changes are written and the run fails at verify**, because "
            f"{sentences.names_of(silent).lower()} cannot be queried, unless that has changed by "
            "then."
        )


def _format_way_to_keep(report: Report, row: ReportRow) -> str:
    """Return how to keep a change that was made outside Git."""
    ways, options = list_ways(report), format_accept_options(row, report)
    command = f"{ways.accept}{format_names(row)}{options}{ways.accept_end}"
    return (
        "To keep a change made outside Git, reject, and accept it into Git, in a checkout and with "
        f"the run store of Airflow (`QUOTA_OPS_RUN_STORE`): {code(command)}"
    )
