"""The record of decisions about plans: appended to, never changed, read by digest.

It is in the run store's folder `approvals`. A run's approval.json is a copy for its report; no
decision is read from it.
"""

import json
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from quota_ops.model.errors import InvalidInput, describe_damage
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.approval import Author, Decision, DecisionKind, select_valid_decisions
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.plan import Plan
from quota_ops.model.runs.run import Decisions
from quota_ops.model.stored import from_json, to_json
from quota_ops.store.places.numbered_files import create_next, read_file, require_whole
from quota_ops.store.places.place import Place
from quota_ops.store.places.written_by import (
    explain_form,
    explain_newer,
    find_newer,
    stamp,
    without_version,
)
from quota_ops.store.run.files import APPROVAL
from quota_ops.store.run.folder import RunFolder


def new_decision(
    folder: RunFolder,
    plan: Plan,
    said: DecisionKind,
    author: Author,
    reason: str,
    *,
    shown: tuple[GuardFinding, ...],
) -> Decision:
    """Return a decision of this moment about a run's plan, with the guards that were shown."""
    return Decision(
        said=said,
        digest=plan.digest,
        shown=shown,
        by=author.by,
        login=author.login,
        at=iso_utc(),
        reason=reason.strip(),
        run=folder.place.name,
    )


def find_valid_decisions(folder: RunFolder, approvals: Place, plan: Plan) -> tuple[Decision, ...]:
    """Return the decisions that count for a run's plan now, as `select_valid_decisions` defines.

    Raises InvalidInput if the record is damaged or cannot be listed.
    """
    policy = plan.strict_policy
    return select_valid_decisions(
        read(approvals, plan.digest),
        folder.place.name,
        datetime.now(UTC),
        policy.approval,
        policy.approval_valid_for,
    )


def append(approvals: Place, decision: Decision) -> None:
    """Add a decision to the record, after all others about its digest."""
    content = json.dumps(stamp(to_json(Decision, decision)), indent=1).encode()
    create_next(
        lambda number: approvals / f"{decision.digest}-{number:04d}.json", lambda _number: content
    )


def record_use(folder: RunFolder, approvals: Place, plan: Plan) -> None:
    """Record that a run begins to write its plan: earlier decisions then count for it alone."""
    record = read(approvals, plan.digest)
    run = folder.place.name
    if record and (record[-1].said, record[-1].run) != (DecisionKind.APPLIED, run):
        applied = Decision(DecisionKind.APPLIED, plan.digest, (), None, None, iso_utc(), "", run)
        append(approvals, applied)


def copy_to_run(folder: RunFolder, decisions: tuple[Decision, ...]) -> None:
    """Add decisions to a run's approval.json, for its report; those in it stay."""
    before = folder.decisions()
    new = [decision for decision in decisions if decision not in before]
    if new:
        folder.write(APPROVAL, Decisions((*before, *new)))


def read(approvals: Place, digest: str) -> tuple[Decision, ...]:
    """Return every decision about a digest, in order.

    Raises InvalidInput if one of them is damaged.
    """
    start = f"{digest}-"
    names = takewhile(lambda name: name.startswith(start), approvals.list(after=start))
    return tuple(_decision(approvals / name) for name in names if name.endswith(".json"))


def _decision(file: Place) -> Decision:
    values: Any = None
    content: bytes | None = None
    try:
        content = read_file(file)
        values = json.loads(content)
        return _dated(from_json(Decision, without_version(values)))
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        if newer := find_newer(values):
            raise explain_newer(file, newer, describe_damage(error)) from error
        require_whole(file, content)
        if values is not None:
            raise explain_form(file, describe_damage(error)) from error
        raise InvalidInput(
            f"{file} is damaged: {describe_damage(error)}",
            "Move the file elsewhere. The plan then needs approval again.",
        ) from error


def _dated(decision: Decision) -> Decision:
    if datetime.fromisoformat(decision.at).tzinfo is None:
        raise ValueError(f"{decision.at!r} has no time zone")
    return decision
