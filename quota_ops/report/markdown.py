"""A report as Markdown, safe to paste into a pull request.

Whatever did not come from quota-ops itself stands in a code span: there nothing is a link, a
mention, a reference, markup or HTML.
"""

import re
from collections.abc import Iterable, Iterator

from quota_ops.findings.silences import spoken
from quota_ops.model.commit import Provenance, short
from quota_ops.model.entity import Entity
from quota_ops.model.plan import SHORT, Plan
from quota_ops.model.report import Report
from quota_ops.model.text import counted
from quota_ops.report import cells
from quota_ops.report.brokers import broker_words
from quota_ops.report.findings import EXPLAINED, FEW, more_words
from quota_ops.report.remarks import (
    NO_LEDGER,
    allow,
    approval_words,
    holds_words,
    stage_lines,
    standstill_words,
    validated_words,
    warnings,
)
from quota_ops.report.rollback import left_words, rollback_words
from quota_ops.report.standing import ReportRow, Section, report_rows
from quota_ops.report.summary import answer, stages_not_run, stopped_stages
from quota_ops.report.wording import (
    shortened,
    shown,
    stated_words,
    uncommitted_words,
)

LIMIT = 60_000
"""GitHub refuses a comment of more than 65,536 characters."""
LONGEST = 300
"""A name or message is cut to so many characters: the comment points, the report holds it all."""


def as_markdown(report: Report) -> str:
    """The report as a comment of at most `LIMIT` characters; says how many rows it left out."""
    rows = report_rows(report)
    said = answer(report, code(report.cluster))
    plan = f" · plan {code(report.plan.digest[:SHORT])}" if report.plan else ""
    commit = commit_part(report.provenance)
    head = [
        f"**quota-ops · {said.fact}**{plan}{commit}",
        f"\n{_sentence(said.details)}" if said.details else "",
    ]
    told = [row for row in rows if row.section is not Section.REST]
    tail = [
        *_stopped(report),
        *(_guards(report.plan) if report.plan else ()),
        *_approval(report),
        *_brokers(report),
        *_findings(report),
    ]
    rows_told = fitting(map(table_row, told), len(told), (*head, *TABLE, *tail)) if told else []
    return "\n".join([*head, *(TABLE if told else ()), *rows_told, *tail]) + "\n"


TABLE = ("", "| | entity | key | current → desired | owner |", "|-|-|-|-|-|")


def fitting(rows: Iterable[str], total: int, others: Iterable[str]) -> list[str]:
    """The first rows that leave room for the other lines, and how many of `total` are left out."""
    room = LIMIT - sum(len(one) + 1 for one in others)
    fit: list[str] = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            return [*fit, "", f"… and {total - len(fit):,} more; the report has them all."]
        fit.append(row)
    return fit


def commit_part(provenance: Provenance) -> str:
    """The part of a heading that says of which commit a run is; empty where nobody knows."""
    if provenance.uncommitted:
        return f" · {uncommitted_words(provenance, code)}"
    if provenance.commit is None:
        return ""
    return f" · commit {code(short(provenance.commit))}{stated_words(provenance)}"


def code(text: str) -> str:
    """The text in a code span whose fence is longer than any run of backticks inside."""
    text = shortened(shown(text), LONGEST) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    # CommonMark takes a space from both ends, unless there is nothing but spaces.
    pad = " " if text.strip(" ") and {text[0], text[-1]} & {"`", " "} else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str) -> str:
    """A code span in a table, where a pipe would end the cell even inside a code span."""
    return code(text).replace("|", "\\|") if text else ""


def _sentence(parts: Iterable[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def table_row(row: ReportRow) -> str:
    """A row of `TABLE`."""
    change = cells.change(row).replace("-", "\N{MINUS SIGN}")
    below = cells.trouble(row) or cells.held(row) or cells.origin(row)
    share = f" ({change})" if change.endswith("%") else ""
    whom = (
        f"{noun} {cell(name)}".strip()
        for noun, name in cells.people(Entity.parse(row.difference.entity))
    )
    columns = (
        cells.sign(row),
        ", ".join(whom),
        cell(row.difference.key),
        f"{cells.current(row)} → **{cells.desired(row)}**{share}"
        + (f"<br>{cell(below)}" if below else ""),
        cell(row.difference.owner or ""),
    )
    return f"| {' | '.join(columns)} |"


def _stopped(report: Report) -> Iterator[str]:
    for stage in stopped_stages(report):
        lines = "<br>".join(map(code, stage_lines(stage)))
        yield f"\n**{stage.stage} {stage.status}**: {lines}"
    if skipped := stages_not_run(report):
        yield f"\nNot run: {', '.join(skipped)}."


def _guards(plan: Plan) -> Iterator[str]:
    if plan.ledger is None:
        yield f"\n{NO_LEDGER}"
    if stopped := standstill_words(plan):
        yield f"\n⚠ {code(stopped)}"
    yield from (f"\n‖ {code(words)}" for words in holds_words(plan))
    for guard in plan.guards:
        way = f"override it with {code(allow(guard.guard))}"
        if guard.allowed is not None:
            way = f"overridden: {code(guard.allowed)}"
        yield f"\n⚠ Guard {code(guard.guard)}: {code(guard.message)}; {way}."


def _approval(report: Report) -> Iterator[str]:
    if report.rollback is not None:
        for words in (rollback_words(report.rollback), *left_words(report.rollback)):
            yield f"\n{code(words)}"
    if said := approval_words(report):
        yield f"\n{code(said)}"


def _findings(report: Report) -> Iterator[str]:
    found = spoken(report.findings)
    if found:
        yield f"\n**{counted(len(found), 'finding')}** ({code(EXPLAINED)})\n"
    for one in found[:FEW]:
        yield f"- {one.code} {code(one.where)}: {code(one.message)} {code(one.remedy)}"
    if more := more_words(found, FEW):
        yield f"- {more}"


def _brokers(report: Report) -> Iterator[str]:
    for said in warnings(report, code):
        yield f"\n⚠ {said}"
    if not report.applied and (said := validated_words(report)):
        yield f"\n{said}"
    for broker in report.brokers:
        if not broker.agrees:
            yield f"\n⚠ {code(broker_words(broker))}"
