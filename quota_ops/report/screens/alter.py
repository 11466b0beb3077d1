"""The output of `alter`, as text and as JSON: a row for each changed key."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from quota_ops.desired.export.one_off import OneOff
from quota_ops.findings.cluster_rules import find_unknown_users
from quota_ops.findings.entity_rules import check_limit, check_names
from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.finding import Finding
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit, json_number, same
from quota_ops.model.quotas.rows import BatchRow, Key
from quota_ops.model.runs.outcome import Outcome, Status, find_written
from quota_ops.model.runs.verification import BrokerResult
from quota_ops.precedence.addresses import explain_same_address
from quota_ops.report.outline.brokers import brokers_words
from quota_ops.report.outline.cells import outcome_words
from quota_ops.report.outline.effects import format_effect
from quota_ops.report.outline.findings import FEW, finding_lines, findings_json
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import Line, Row, Screen, Span, Table, Tone, line
from quota_ops.report.outline.sentences import altered_at_standstill
from quota_ops.report.screens.plan import guard_line

_GIT_UNKNOWN = (
    "The desired state, the ledger or a hold is invalid, so it is unknown what the next run does.\n"
    "Run quota-ops check, and then quota-ops plan.\n"
)


@dataclass(frozen=True)
class AlterReport:
    """One run of alter: its rows, the outcome of each entity, guards and Git's values.

    `changing` are the keys that get another value. `git` is None if the desired state, the ledger
    or a hold is invalid. `standstill` is the reason why no reconcile may write now. `effects` are
    those that the values before and after do not show. `facts` include the users of the cluster.
    """

    policy: Policy
    run: str
    rows: Sequence[BatchRow]
    outcomes: Sequence[Outcome]
    guards: Sequence[GuardFinding]
    changing: frozenset[Key]
    git: OneOff | None
    standstill: str | None
    sent: bool
    effects: Mapping[Key, Effect]
    facts: ClusterFacts | None = None
    brokers: Sequence[BrokerResult] = ()
    """The brokers that were read back; empty if nothing was written."""

    def count_altered(self) -> int:
        """Return how many keys got another value."""
        return len(self.changing & find_written(self.outcomes))


def alter_screen(report: AlterReport) -> Screen:
    """Return the table of the changed keys, then guards, findings, and the run folder."""
    outcomes = {outcome.entity: outcome for outcome in report.outcomes}
    policy = report.policy
    verb = _outcome_words(report) if report.sent else "validated, nothing written"
    heading = line(f"{policy.cluster} ({policy.cluster_id}): {verb}", Tone.STRONG)
    table = Table(
        ("entity", "key", "before", "after", "result"),
        tuple(_row(report, row, outcomes[row.entity]) for row in report.rows),
    )
    blocks: list[Line | Table] = [heading, line(), table, line()]
    if report.guards:
        blocks += [*map(guard_line, report.guards), line()]
    if found := _find(report):
        blocks += [*finding_lines(found, most=FEW), line()]
    if report.standstill is not None:
        words = altered_at_standstill(policy.cluster, report.standstill)
        blocks += [line(words, Tone.CHANGE), line()]
    if report.brokers:
        agrees = all(broker.agrees for broker in report.brokers)
        tone = Tone.OK if agrees else Tone.REFUSAL
        blocks.append(line(brokers_words(report.brokers), tone))
    return (*blocks, line(f"run: {report.run}", Tone.CONTEXT))


def kept_text(report: AlterReport) -> str:
    """Return the YAML that keeps the written values; empty if Git needs no change."""
    if report.git is None:
        return _GIT_UNKNOWN
    accepted = {outcome.entity for outcome in report.outcomes if outcome.status is Status.ACCEPTED}
    written = [row for row in report.rows if report.sent and row.entity in accepted]
    keep = "".join(report.git.to_keep(written))
    return f"\nTo keep it, declare it in Git:\n\nquotas:\n{keep}" if keep else ""


def alter_json(report: AlterReport) -> dict[str, Any]:
    """Return the report as one JSON object."""
    outcomes = {outcome.entity: outcome for outcome in report.outcomes}
    changes = [
        {
            "entity": row.entity,
            "key": row.key,
            "before": json_number(row.before),
            "after": json_number(row.after),
            "status": str(outcomes[row.entity].status),
            "code": outcomes[row.entity].code,
            "error": outcomes[row.entity].error,
            "message": outcomes[row.entity].message,
            "effect": effect and effect.as_json(row.key),
            "git": report.git.describe_effect(row) if report.git else None,
            "overrides": taken and {"entity": taken.entity, "file": taken.file, "line": taken.line},
        }
        for row in report.rows
        for effect in (report.effects.get(row.id),)
        for taken in (report.git.find_overridden(row, effect) if report.git else None,)
    ]
    return {
        "run": report.run,
        "sent": report.sent,
        "changed": report.count_altered() if report.sent else 0,
        "standstill": report.standstill,
        "changes": changes,
        "brokers": [asdict(broker) for broker in report.brokers],
        "guards": [asdict(guard) for guard in report.guards],
        "findings": findings_json(_find(report)),
    }


def _outcome_words(report: AlterReport) -> str:
    """Return the outcome of an alter that was sent, for its heading."""
    if not report.changing:
        return "nothing changed, the cluster already stored these values"
    if report.count_altered():
        return "altered"
    is_unknown = any(outcome.may_be_written for outcome in report.outcomes)
    return "unknown whether altered" if is_unknown else "not altered"


def _find(report: AlterReport) -> list[Finding]:
    """Return the findings that a plan would report for the names and values that are set."""
    names = dict.fromkeys(row.entity for row in report.rows if row.after is not None)
    return [
        *(finding for name in names for finding in check_names(Entity.parse(name))),
        *(find_unknown_users(names, report.facts) if report.facts else ()),
        *(
            finding
            for row in report.rows
            if row.after is not None
            for finding in check_limit(row.entity, row.key, row.after)
        ),
    ]


def result_words(outcome: Outcome, *, sent: bool) -> str:
    """Return the result of a change that was sent, or only validated."""
    if outcome.status is Status.ACCEPTED and not sent:
        return "would be accepted"
    return outcome_words(outcome)


def _row(report: AlterReport, row: BatchRow, outcome: Outcome) -> Row:
    accepted = outcome.status is Status.ACCEPTED
    words = result_words(outcome, sent=report.sent)
    if accepted and same(row.before, row.after):
        words += ", no change"
    if outcome.code:
        words += f" [code {outcome.code}]"
    cells = (
        row.entity,
        row.key,
        format_limit(row.key, row.before),
        format_limit(row.key, row.after),
    )
    below, effect = [], report.effects.get(row.id)
    if accepted and effect is not None:
        below.append(format_effect(effect, row.entity, row.key))
    if accepted and report.git and (by_git := report.git.describe_effect(row)):
        below.append(by_git if report.sent else f"once written: {by_git}")
    if accepted and report.git and (other := report.git.find_respelled(row)):
        same_address = explain_same_address(row.entity)
        below.append(f"{other.entity} ({other.file}:{other.line}) is {same_address}")
    elif accepted and report.git and (taken := report.git.find_overridden(row, effect)):
        below.append(
            f"it comes before {taken.entity} ({taken.file}:{taken.line}) for some clients: reports "
            "show it as overriding until it is removed or accepted into Git"
        )
    tone = Tone.OK if accepted else Tone.REFUSAL
    lines = tuple(line(f"  {escape_text(text)}", Tone.CONTEXT) for text in below)
    return Row((*map(Span, cells), Span(words, tone)), lines)
