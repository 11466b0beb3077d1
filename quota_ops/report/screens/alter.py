"""The output of `alter`, as text and as JSON: a row for each changed key."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from quota_ops.desired.export.one_off import OneOff
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.quota import format_limit, json_number
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.outcome import Outcome, Status, find_written
from quota_ops.model.runs.report import Report
from quota_ops.precedence.resolution import explain_same_address
from quota_ops.report.outline import brokers, effects, findings, formats, sentences
from quota_ops.report.outline.cells import describe_outcome
from quota_ops.report.outline.layout import Line, Row, Screen, Span, Table, Tone, line
from quota_ops.report.outline.outline import block_lines, make_guard_block


class AlterReport(Struct, frozen=True):
    """An alter: the report of its run, the folder, its guards, and what Git declares.

    `git` is None if the desired state, the ledger or a hold is invalid, and `unknown` why.
    `standstill` is the reason why no reconcile may write now.
    """

    report: Report
    run: str
    guards: tuple[GuardFinding, ...] = ()
    git: OneOff | None = None
    unknown: str = ""
    standstill: str | None = None

    @property
    def sent(self) -> bool:
        """Whether it was sent; otherwise it was only validated."""
        return bool(self.report.applied)

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each entity, of the writes or else of the validation."""
        found = self.report.applied or self.report.validated
        return {outcome.entity: outcome for outcome in found}

    @property
    def changed(self) -> int:
        """How many keys got another value."""
        return len(self.changing & find_written(self.report.applied))

    @property
    def changes(self) -> tuple[Difference, ...]:
        """The rows that were typed."""
        return self.report.record.changes if self.report.record else ()

    @property
    def changing(self) -> set[Key]:
        """The rows that get another value."""
        return {row.id for row in self.changes if row.changes_value}


def alter_screen(shown: AlterReport) -> Screen:
    """Return the table of the changed keys, then guards, findings, and the run folder."""
    report = shown.report
    verb = _describe_outcome(shown) if shown.sent else "validated, nothing written"
    heading = line(f"{report.cluster} ({report.cluster_id}): {verb}", Tone.STRONG)
    blocks: list[Line | Table] = [heading, line(), alter_table(shown), line()]
    if guards := shown.guards:
        blocks += [*block_lines(make_guard_block(guard, str) for guard in guards), line()]
    if report.findings:
        blocks += [*findings.finding_lines(report.findings, most=findings.FEW), line()]
    if shown.standstill is not None:
        words = sentences.altered_at_standstill(report.cluster, shown.standstill)
        blocks += [line(words, Tone.CHANGE), line()]
    if report.verification.brokers:
        agrees = all(broker.agrees for broker in report.verification.brokers)
        tone = Tone.OK if agrees else Tone.REFUSAL
        blocks.append(line(brokers.describe_brokers(report.verification.brokers), tone))
    return (*blocks, line(f"run: {shown.run}", Tone.CONTEXT))


def alter_table(shown: AlterReport) -> Table:
    """Return a row for each changed key."""
    outcomes = shown.outcomes
    rows = tuple(_row(shown, row, outcomes.get(row.entity)) for row in shown.changes)
    return Table(("entity", "key", "before", "after", "result"), rows)


def kept_text(shown: AlterReport) -> str:
    """Return the YAML that keeps the written values; empty if Git needs no change."""
    if shown.git is None:
        return f"It is unknown what the next run does: {shown.unknown}\n"
    outcomes = shown.outcomes if shown.sent else {}
    written = [
        row
        for row in shown.changes
        if row.entity in outcomes and outcomes[row.entity].status is Status.ACCEPTED
    ]
    keep = "".join(shown.git.to_keep(written))
    return f"\nTo keep it, declare it in Git:\n\nquotas:\n{keep}" if keep else ""


def alter_json(shown: AlterReport) -> dict[str, Any]:
    """Return the report as one JSON object."""
    report, outcomes, git = shown.report, shown.outcomes, shown.git
    changes = [
        {
            "entity": row.entity,
            "key": row.key,
            "before": json_number(row.before),
            "after": json_number(row.after),
            "status": str(outcome.status),
            "code": outcome.code,
            "error": outcome.error,
            "message": outcome.message,
            "effect": effect and effect.as_json(row.key),
            "git": git.describe_effect(row.id, row.after) if git else None,
            "overrides": taken and {"entity": taken.entity, "file": taken.file, "line": taken.line},
        }
        for row in shown.changes
        for outcome, effect in ((outcomes[row.entity], report.effects.get(row.id)),)
        for taken in (git.find_overridden(row, effect) if git else None,)
    ]
    return {
        "run": shown.run,
        "sent": shown.sent,
        "changed": shown.changed,
        "standstill": shown.standstill,
        "changes": changes,
        "brokers": [asdict(broker) for broker in report.verification.brokers],
        "guards": [asdict(guard) for guard in shown.guards],
        "findings": findings.findings_json(report.findings),
    }


def _describe_outcome(shown: AlterReport) -> str:
    """Return the outcome of an alter that was sent, for its heading."""
    if not shown.changing:
        return "nothing changed, the cluster already stored these values"
    if shown.changed:
        return "altered"
    is_unknown = any(outcome.may_be_written for outcome in shown.report.applied)
    return "unknown whether altered" if is_unknown else "not altered"


def _row(shown: AlterReport, row: Difference, outcome: Outcome | None) -> Row:
    accepted = outcome is not None and outcome.status is Status.ACCEPTED
    words = describe_outcome(outcome) if outcome else "not validated"
    if accepted and not shown.sent:
        words = "would be accepted"
    if accepted and not row.changes_value:
        words += ", no change"
    if outcome and outcome.code:
        words += f" [code {outcome.code}]"
    cells = (
        row.entity,
        row.key,
        format_limit(row.key, row.before),
        format_limit(row.key, row.after),
    )
    below, git, effect = [], shown.git, shown.report.effects.get(row.id)
    if accepted and effect is not None:
        below.append("; ".join(effects.list_effects(effect, row.entity, row.key)))
    if accepted and git and (by_git := git.describe_effect(row.id, row.after)):
        below.append(by_git if shown.sent else f"once written: {by_git}")
    if accepted and git and (other := git.find_respelled(row)):
        same_address = explain_same_address(row.entity)
        below.append(f"{other.entity} ({other.file}:{other.line}) is {same_address}")
    elif accepted and git and (taken := git.find_overridden(row, effect)):
        below.append(
            f"it comes before {taken.entity} ({taken.file}:{taken.line}) for some clients: reports "
            "show it as overriding until it is removed or accepted into Git"
        )
    tone = Tone.OK if accepted else Tone.REFUSAL
    lines = tuple(line(f"  {formats.escape_text(text)}", Tone.CONTEXT) for text in below)
    return Row((*map(Span, cells), Span(words, tone)), lines)
