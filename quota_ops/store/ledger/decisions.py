"""The record of decisions about plans: appended to, never changed, read by digest.

It is in the run store's folder `approvals`. A run's approval.json is a copy for its report; no
decision is read from it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import takewhile

from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.approval import Author, Decision, DecisionKind, select_valid_decisions
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.plan import Plan
from quota_ops.model.runs.run import Decisions
from quota_ops.store.places.numbered_files import create_next, encode, read_content
from quota_ops.store.places.place import Place
from quota_ops.store.run.files import APPROVAL
from quota_ops.store.run.folder import RunFolder


def new_decision(
    folder: RunFolder,
    plan: Plan,
    said: DecisionKind,
    author: Author,
    reason: str,
    *,
    shown: tuple[GuardFinding, ...] | None = None,
) -> Decision:
    """Return a decision of this moment about a run's plan; by default all guards were shown."""
    return Decision(
        said=said,
        digest=plan.digest,
        shown=plan.guards if shown is None else shown,
        by=author.by,
        login=author.login,
        at=iso_utc(),
        reason=reason.strip(),
        run=folder.place.name,
    )


def find_valid_decisions(
    folder: RunFolder, plan: Plan, record: Iterable[Decision] | None = None
) -> tuple[Decision, ...]:
    """Return the decisions that count for a run's plan now, as `select_valid_decisions` defines.

    Those in the `record` as it is now, or was. Raises InvalidInput if it is damaged or cannot be
    listed.
    """
    policy = plan.strict_policy
    return select_valid_decisions(
        read(folder.records.approvals, plan.digest) if record is None else record,
        folder.place.name,
        datetime.now(UTC),
        policy.approval,
        policy.approval_valid_for,
    )


def append(approvals: Place, decision: Decision) -> None:
    """Add a decision to the record, after all others about its digest."""
    create_next(
        lambda number: approvals / f"{decision.digest}-{number:04d}.json",
        lambda _number: encode(Decision, decision),
    )


def record_use(folder: RunFolder, plan: Plan) -> tuple[Decision, ...]:
    """Record that a run begins to write its plan: earlier decisions then count for it alone.

    Returns those that do: none if another run has recorded its use just before.
    """
    approvals, run = folder.records.approvals, folder.place.name
    record = read(approvals, plan.digest)
    if record and (record[-1].said, record[-1].run) != (DecisionKind.APPLIED, run):
        applied = Decision(DecisionKind.APPLIED, plan.digest, (), None, None, iso_utc(), "", run)
        append(approvals, applied)
        record = tuple(takewhile(applied.__ne__, read(approvals, plan.digest)))
    return find_valid_decisions(folder, plan, record)


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
    remedy = "Move the file elsewhere. The plan then needs approval again."
    names = takewhile(lambda name: name.startswith(start), approvals.list(after=start))
    files = (approvals / name for name in names if name.endswith(".json"))
    return tuple(read_content(file, Decision, remedy) for file in files)
