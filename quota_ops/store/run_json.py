"""Plans, outcomes and verifications to JSON values and back."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from types import UnionType
from typing import Any

from quota_ops.findings.codes import CODES
from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.field_types import check_types
from quota_ops.model.finding import Finding, Location, Silence
from quota_ops.model.guard import GuardFinding
from quota_ops.model.hold import Hold
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.plan import Plan
from quota_ops.model.policy import Policy
from quota_ops.model.quota import json_number
from quota_ops.model.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.store.json_text import without_nulls

Json = dict[str, Any]

_NUMBERS = ("before", "after", "verified")
_NULLS: Json = dict.fromkeys(Difference._fields)
_NOTHING_MORE = Outcome(0, "", (), Status.ACCEPTED)[4:]


def _float(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def typed(value: Any, kind: type | UnionType) -> Any:
    """Return the value; TypeError if it is of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} is no {getattr(kind, '__name__', kind)}")
    return value


def about_from_json(values: Mapping[str, Any]) -> Json:
    """Return the fields of run.json; those about its commit as one Provenance."""
    provenance = _provenance(values)
    return {
        "run": typed(values["run"], str),
        "cluster": typed(values["cluster"], str),
        "commit": provenance.commit,
        "provenance": provenance,
        "started": typed(values["started"], str),
        "sequence": typed(values.get("sequence"), int | None),
        **{
            name: typed(values.get(name), str | None)
            for name in ("by", "path", "cluster_id", "as_of")
        },
    }


def provenance_json(provenance: Provenance) -> Json:
    """Return the fields of run.json about a run's commit."""
    return {
        "commit": provenance.commit,
        "commit_source": provenance.source,
        "uncommitted": list(provenance.uncommitted),
        "base": provenance.base,
        "commit_author": provenance.author,
        "git_failure": provenance.failure,
    }


def _provenance(values: Mapping[str, Any]) -> Provenance:
    """Parse what `provenance_json` wrote; an earlier release wrote only the commit."""
    source = values.get("commit_source")
    return Provenance(
        typed(values["commit"], str | None),
        None if source is None else CommitSource(source),
        tuple(typed(one, str) for one in values.get("uncommitted", ())),
        typed(values.get("base"), str | None),
        typed(values.get("git_failure"), str | None),
        typed(values.get("commit_author"), str | None),
    )


def plan_json(plan: Plan) -> Json:
    """Return plan.json: the digest, then the summary for people, then every differing row."""
    return {
        "digest": plan.digest,
        "commit": plan.commit,
        "guards": [asdict(one) for one in plan.guards],
        "desired": plan.desired,
        "actual": plan.actual,
        "batches": plan.batches,
        "ledger": plan.ledger,
        "holds": [one.as_json() for one in plan.holds],
        "standstill": plan.standstill,
        "policy": plan.policy.as_json(),
        "applied_policy": plan.applied and plan.applied.as_json(),
        "differences": [_difference_json(row, plan.policy.cluster_id) for row in plan.differences],
    }


def _difference_json(row: Difference, cluster: str) -> Json:
    """Return a differing row for plan.json, without nulls and without the plan's own cluster."""
    values = row._asdict()
    for name in _NUMBERS:
        values[name] = json_number(values[name])
    if row.cluster == cluster:
        del values["cluster"]
    return without_nulls(values)


def plan_from_json(values: Mapping[str, Any]) -> tuple[Plan, str]:
    """Return the plan that `plan_json` wrote, and the digest in the file.

    Raises KeyError, TypeError, ValueError or AttributeError if the values are not a plan.
    """
    applied, policy = values.get("applied_policy"), Policy.from_json(values["policy"])
    plan = Plan(
        policy=policy,
        commit=typed(values["commit"], str | None),
        differences=check_types(
            [_difference(row, policy.cluster_id) for row in values["differences"]]
        ),
        guards=check_types([GuardFinding(**one) for one in values["guards"]]),
        desired=typed(values["desired"], int),
        actual=typed(values["actual"], int),
        batches=typed(values["batches"], int),
        ledger=typed(values["ledger"], str | None),
        holds=tuple(map(Hold.from_json, values["holds"])),
        standstill=typed(values["standstill"], str | None),
        applied=None if applied is None else Policy.from_json(applied),
    )
    return plan, typed(values["digest"], str)


def _difference(row: Json, cluster: str) -> Difference:
    values = _NULLS | {"cluster": cluster} | row
    numbers = {name: _float(values[name]) for name in _NUMBERS}
    return Difference(
        **values | numbers | {"kind": Kind(row["kind"]), "action": Action(row["action"])}
    )


def outcomes_json(outcomes: Iterable[Outcome]) -> Json:
    """Return the outcome of each entity, in the order of the batches."""
    return {"outcomes": [_outcome_json(one) for one in outcomes]}


def _outcome_json(one: Outcome) -> Json:
    """Return an outcome; code, error, message and earlier only if one of them is set."""
    if one[4:] == _NOTHING_MORE:
        return {"batch": one.batch, "entity": one.entity, "keys": one.keys, "status": one.status}
    return one._asdict()


def outcomes_from_json(values: Mapping[str, Any]) -> tuple[Outcome, ...]:
    """Return the outcomes that `outcomes_json` wrote."""
    return check_types(
        [
            Outcome(
                **one
                | {
                    "keys": tuple(one["keys"]),
                    "status": Status(one["status"]),
                    "earlier": (earlier := one.get("earlier")) and Status(earlier),
                }
            )
            for one in values["outcomes"]
        ]
    )


def verification_json(
    brokers: Iterable[BrokerResult],
    verdicts: Iterable[RowVerdict],
    verified: int,
    applied: str | None = None,
) -> Json:
    """Return the response of each broker, the rows that differ, and how many are verified.

    `applied` is the digest of the applied.json whose writes were verified.
    """
    return {
        "verified": verified,
        "applied": applied,
        "brokers": [asdict(one) for one in brokers],
        "verdicts": [
            row._asdict()
            | {
                "expected": json_number(row.expected),
                "seen": [[broker, json_number(value)] for broker, value in row.seen],
            }
            for row in verdicts
        ],
    }


def verification_from_json(
    values: Mapping[str, Any],
) -> tuple[tuple[BrokerResult, ...], tuple[RowVerdict, ...], int]:
    """Return the brokers, verdicts and count that `verification_json` wrote."""
    names = {one.name for one in fields(BrokerResult)}
    before: Json = {"bootstrap": False, "absent": False, "compared": 0, "left": 0}  # these fields
    brokers = [
        BrokerResult(**{name: (before | one)[name] for name in names}) for one in values["brokers"]
    ]
    verdicts = [
        RowVerdict(
            row["entity"],
            row["key"],
            _float(row["expected"]),
            Verdict(row["verdict"]),
            tuple((typed(broker, int), _float(value)) for broker, value in row["seen"]),
        )
        for row in values["verdicts"]
    ]
    return check_types(brokers), check_types(verdicts), typed(values["verified"], int)


def finding_json(finding: Finding) -> Json:
    """Return a finding; its place is [file, line, column] or null."""
    return finding._asdict()


def findings_from_json(values: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings that `finding_json` wrote to a JSON object."""
    return tuple(_finding(one) for one in values["findings"])


def _finding(values: Json) -> Finding:
    if values["code"] not in CODES:
        raise ValueError(f"{values['code']!r} is not a finding code")
    texts = {name: typed(values[name], str) for name in ("message", "remedy")}
    names = {name: typed(values[name], str | None) for name in ("entity", "key", "silenced")}
    place = values["place"] and _place(values["place"])
    return Finding(**values | texts | names | {"place": place})


def _place(values: list[Any]) -> Location:
    file, line, column = values
    return Location(typed(file, str), typed(line, int), typed(column, int | None))


def checked_json(findings: Iterable[Finding], silences: Iterable[Silence]) -> Json:
    """Return the findings of check in the files, and every silence there."""
    return {
        "findings": [finding_json(one) for one in findings],
        "silences": [one._asdict() for one in silences],
    }


def checked_from_json(
    values: Mapping[str, Any],
) -> tuple[tuple[Finding, ...], tuple[Silence, ...]]:
    """Return the findings and silences that `checked_json` wrote."""
    silences = (Silence(**one | {"place": _place(one["place"])}) for one in values["silences"])
    return findings_from_json(values), tuple(silences)
