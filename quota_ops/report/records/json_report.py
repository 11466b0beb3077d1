"""A report as JSON, for programs."""

from typing import Any

from msgspec.structs import asdict

from quota_ops.model.plans.approval import Decision, needs_approval
from quota_ops.model.plans.client_effects import InventoryEffects
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.quota import json_number
from quota_ops.model.quotas.rows import OverrideRow
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.rollback import Rollback
from quota_ops.model.stored import to_json
from quota_ops.model.usage.throttling import Throttling
from quota_ops.report.outline import cells, findings, sentences
from quota_ops.report.outline.row_status import (
    ReportRow,
    RowStatus,
    count_in_sync,
    count_statuses,
    report_rows,
)
from quota_ops.report.outline.summary import summarize
from quota_ops.store.places.json_text import in_ascii, json_text, without_nulls

SCHEMA = 2
"""Raised when a field is removed or changes its meaning; new fields do not raise it."""
COUNTED = (
    "in_sync",
    "overriding",
    "drifted",
    "returned",
    "pending",
    "held",
    "unmanaged",
    "unsettled",
    "not_judged",
)
"""The counts of a report that the history and Airflow's metrics have."""


def as_json(report: Report) -> str:
    """Return the report as one JSON object, in ASCII, with each row on its own line.

    schema          this number
    cluster, cluster_id, run, commit, started, finished, writes, versions
    by, login       who started it, if that is not the login, and the login of the process
    looked          when verify, or else describe, read the cluster; null if nothing was read
    commit_source   compared (with every byte that was read), given or airflow (stated, not
                    compared); null where no commit is known
    uncommitted     the first files that differ from the commit that is checked out
    answer          status (In sync, Pending, Needs attention, Unknown; for a run that was cut off
                    while it wrote: Running, or Interrupted until it is verified; for a run that
                    does not compare with Git: Rolled back, Nothing to roll back, Altered, Not
                    altered, Adopted, Released) and sentence
    counts          how many quotas have which status at the end of the run. `changed` were set or
                    cleared by this run, `found` were stored before it sent anything; those that
                    are set are in `in_sync` too. `overridden` are stored as in Git, and some
                    clients get another quota in their place. `unread` were not changed, and no
                    broker responded afterwards. null is what the run did not compare: verify of a
                    cluster compares only the quotas that Git declares, and a rollback none of them
    verified        how many rows have the desired value on every broker that responded
    stages          stage, status, seconds, message
    plan            digest, desired, actual, in_sync, batches, ledger, holds (who, until, by,
                    reason, at), standstill (why nothing may be written), guards, needs_approval,
                    repairs (what a run writes although guards block: entity, key), waiting (what
                    they hold back), policy; null without a plan
    invalid         the quotas files with problems, which the run left out: file, owner, line,
                    message, problems; their rows are `not_judged`
    warnings        sentences: why stored quotas may not apply, or may be outdated
    rollback        for a run that rolls back another: run, commit, digest, by, reason, rows
                    (entity, key, before, after, owner, verified, now, left, foreign); else null
    clients         how the plan affects the clients of the inventory: inventory, attempt,
                    computed_from, owners (owner, clients, keys, newly_limited, cut, raised,
                    no_longer_limited, losing, throttled, shared_differently, may_get_less,
                    may_get_more),
                    trouble (why they are not counted); null without one, or without writes
    throttling      whom the cuts would have throttled: days and until (the window), trouble (why no
                    use is known), cuts (entity, key, why: the reason if a part is unknown,
                    delays: for each group that would share a limit: shared_by, broker, highest,
                    share of the window that was seen, and in seconds least, delayed, longest and
                    at_present: see `quota_ops.model.usage.throttling`); null without a source of
                    use, or without cuts
    findings        code, severity, entity, key, file, line, column, message, remedy, `silenced`
    protected       protected quotas that come first for clients of declared ones: entity, key,
                    value, declared (entity, value, owner, file, line)
    capacity        what Git promises on each broker by key: key, capacity, factor, promised,
                    owners (owner, promised); empty without `capacity` in cluster.yaml
    decisions       each approval or rejection of the plan: said, digest, shown, by, login,
                    at, reason, run
    brokers         broker, address, queries (how often it was queried), lagging (how many
                    rows differ), error, bootstrap (whether only that address was queried; broker is
                    the one that responded there, -1 unknown), absent (whether it belongs to the
                    cluster and could not be queried; `error` is why), compared (how many rows),
                    skipped (how many rows)
    rows            sorted by entity and key: the columns of a difference but `cluster` and `batch`,
                    `target` (the desired value), `status`, `guarded` (only where it
                    is true), `origin` (where a value that is not in the ledger came from) and
                    `changed_after` (since when at most, if that is known). Of an overriding row:
                    `clients` (who gets it, in words), `in_force` (their limit) and `overrides`
                    (declared rows of which it takes them, at least two of several: entity, value,
                    owner, file, line),
                    `effect` (which classes of clients the write concerns, if its values do not
                    show it: see `quota_ops.model.plans.effect`),
                    `validated` and `applied` (batch, status, code, error, message), `verdict` and
                    `seen` ([broker, value] each). Nulls are left out; so are `kind`, `before` and
                    `verified` of a row that no plan compared: see `seen`

    Numbers are in the key's own unit; NaN, inf and -inf are written as strings.
    """
    rows = report_rows(report)
    ordered = sorted(rows, key=lambda row: (row.difference.entity, row.difference.key))
    return in_ascii(json_text(_head(report) | {"rows": map(row_json, ordered)}))


def _head(report: Report) -> dict[str, Any]:
    summary = summarize(report)
    return {
        "schema": SCHEMA,
        "cluster": report.cluster,
        "cluster_id": report.cluster_id,
        "run": report.run,
        "commit": report.commit,
        "commit_source": report.provenance.source,
        "uncommitted": list(report.provenance.uncommitted),
        "by": report.by,
        "login": report.login,
        "started": report.started,
        "finished": report.finished,
        "looked": report.looked,
        "writes": report.writes,
        "answer": {"status": summary.status, "sentence": summary.sentence},
        "counts": count_rows(report),
        "verified": report.verification.verified,
        "stages": [asdict(stage) for stage in report.stages],
        "plan": None if report.plan is None else _plan(report.plan),
        "invalid": [file._asdict() for file in report.invalid],
        "warnings": sentences.warnings(report),
        "rollback": report.rollback and to_json(Rollback, report.rollback),
        "clients": report.clients and to_json(InventoryEffects, report.clients),
        "throttling": report.throttling and to_json(Throttling, report.throttling),
        "findings": findings.findings_json(report.findings),
        "protected": [
            {"entity": row.entity, "key": row.key, "value": json_number(row.value)}
            | {"declared": _override_json(row)}
            for row in report.protected
        ],
        "capacity": [
            promise._asdict()
            | {"promised": promise.total}
            | {"owners": [{"owner": owner, "promised": value} for owner, value in promise.owners]}
            for promise in report.promises
        ],
        "decisions": [to_json(Decision, decision) for decision in report.decisions],
        "brokers": [asdict(broker) for broker in report.verification.brokers],
        "versions": dict(report.versions),
    }


def count_rows(report: Report) -> dict[str, int | None]:
    """Return how many rows have each status; null where the run did not get so far."""
    counts: dict[str, int | None] = {status.name.lower(): None for status in RowStatus}
    count = count_statuses(report)
    if report.plan is not None:
        counts |= {status.name.lower(): number for status, number in count.items()}
        counts["in_sync"] = None if report.rollback else count_in_sync(report)
    elif report.verification.brokers:
        counts |= {
            "in_sync": count_in_sync(report),
            "overridden": None if report.overrides is None else count[RowStatus.OVERRIDDEN],
            "overriding": None if report.overrides is None else count[RowStatus.OVERRIDING],
            "unsettled": count[RowStatus.UNSETTLED],
            "unread": count[RowStatus.UNREAD],
        }
    return counts


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "digest": plan.digest,
        "desired": plan.desired,
        "actual": plan.actual,
        "in_sync": plan.in_sync,
        "batches": plan.batches,
        "ledger": plan.ledger,
        "holds": [hold.as_json() for hold in plan.holds],
        "standstill": plan.standstill,
        "guards": [asdict(guard) for guard in plan.guards],
        "needs_approval": needs_approval(plan),
        "repairs": [row.id._asdict() for row in plan.repairs],
        "waiting": [row.id._asdict() for row in plan.waiting],
        "policy": plan.policy.as_json(),
    }


def row_json(row: ReportRow) -> dict[str, Any]:
    """Return a row as a JSON value: see `as_json`."""
    difference, verdict = row.difference, row.verdict
    values = difference._asdict() | {
        "cluster": None,
        "batch": None,
        "kind": difference.kind if row.planned else None,
        "before": json_number(difference.before) if row.planned else None,
        "after": json_number(difference.after),
        "verified": json_number(difference.verified) if row.planned else None,
        "target": json_number(difference.target),
        "status": row.status.name.lower(),
        "guarded": row.guarded or None,
        "origin": row.origin and row.origin.words,
        "effect": row.effect and row.effect.as_json(difference.key),
        "changed_after": row.origin and row.origin.after,
        "clients": cells.overriding_clients(row) if row.overrides else None,
        "in_force": json_number(row.overrides[0].value) if row.overrides else None,
        "overrides": [_override_json(override) for override in row.overrides] or None,
        "validated": _outcome(row.validated),
        "applied": _outcome(row.applied),
        "verdict": verdict and verdict.verdict,
        "seen": [[broker, json_number(value)] for broker, value in verdict.seen]
        if verdict and verdict.seen
        else None,
    }
    return without_nulls(values)


def _override_json(row: OverrideRow) -> dict[str, Any]:
    """Return the declared side of an override: its entity, value, owner and place."""
    return {
        "entity": row.declared_entity,
        "value": json_number(row.declared),
        "owner": row.owner,
        "file": row.file,
        "line": row.line,
    }


def _outcome(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    values = {"batch": outcome.batch, "status": outcome.status, "code": outcome.code or None}
    return without_nulls(values | {"error": outcome.error, "message": outcome.message})
