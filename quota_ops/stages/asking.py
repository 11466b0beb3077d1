"""A person's word on a plan: found again by its digest, kept for ever, and put into effect."""

import json
from itertools import count
from pathlib import Path

from quota_ops import artefact
from quota_ops.model.approval import Decision, Said
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.moment import iso_utc
from quota_ops.model.plan import SHORT, Plan
from quota_ops.run_folder import APPROVAL, RunFolder
from quota_ops.stages import plan as judging

_NOTHING = "Nothing was written."


def plan_of(folder: RunFolder) -> Plan:
    """The plan that a run's plan stage left."""
    return folder.plan()[0]


def answered(folder: RunFolder, plan: Plan, said: Said, by: str | None, reason: str) -> Decision:
    """What somebody just said of a run's plan."""
    return Decision(
        said=said,
        digest=plan.digest,
        guards=tuple(sorted({one.guard for one in plan.guards})),
        by=by,
        at=iso_utc(),
        reason=reason.strip(),
        run=folder.about()["run"],
    )


def earlier(approvals: Path, plan: Plan) -> Decision | None:
    """The last word on this digest, of whatever run, if it lets this plan pass.

    Raises InvalidInput when what was kept of it is damaged.
    """
    kept = sorted(approvals.glob(f"{plan.digest}-*.json"))
    last = _read(kept[-1]) if kept else None
    return last if last is not None and last.allows(plan) else None


def decide(folder: RunFolder, approvals: Path, decision: Decision) -> None:
    """Keep a decision about the run's plan, and let the guards pass that it is about.

    Raises Refused when it is not an approval, has no reason, or is about another plan.
    """
    plan, short = plan_of(folder), decision.digest[:SHORT]
    who = decision.by or "nobody"
    if decision.digest != plan.digest:
        raise Refused(
            f"{who} was asked about plan {short}, this one is {plan.digest[:SHORT]}",
            f"{_NOTHING} Look at the plan again.",
        )
    if more := {one.guard for one in plan.refused}.difference(decision.guards):
        raise Refused(
            f"{who} was asked about plan {short} before {', '.join(sorted(more))} asked too",
            f"{_NOTHING} Look at the plan again.",
        )
    if decision.said is Said.APPROVED and not decision.reason:
        raise Refused(
            f"{who} approved plan {short} without a reason",
            f"{_NOTHING} Run again, and say why: it is recorded.",
        )
    _keep(folder, approvals, decision)
    if decision.said is Said.REJECTED:
        why = f": {decision.reason}" if decision.reason else ""
        raise Refused(f"{who} rejected plan {short}{why}", _NOTHING)
    if decision.said is Said.NOTHING:
        raise Refused(f"nobody answered in time whether plan {short} may be applied", _NOTHING)
    if plan.refused:
        with folder.stage("plan"):
            judging.run(folder, {one.guard: one.allowed or decision.reason for one in plan.guards})


def remember(approvals: Path, decision: Decision) -> None:
    """Keep a decision where every run finds it, as the last word on its digest."""
    content = json.dumps(decision.as_json(), indent=1).encode()
    for number in count(1):
        place = approvals / f"{decision.digest}-{number:04d}.json"
        if artefact.create(place, content):
            break


def _keep(folder: RunFolder, approvals: Path, decision: Decision) -> None:
    """Add to what the run has; and, if somebody said it of this run, to what every run finds."""
    before = folder.decisions()
    if decision in before:
        return
    said_now = decision.said is not Said.NOTHING and decision.run == folder.about()["run"]
    if said_now:
        remember(approvals, decision)
    folder.write_json(APPROVAL, {"decisions": [one.as_json() for one in (*before, decision)]})


def _read(file: Path) -> Decision:
    try:
        return Decision.from_json(json.loads(file.read_bytes()))
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{file} is damaged: {error!r}", "Move it aside: the plan is then asked about again."
        ) from error
