"""A sample report that shows everything a page can show."""

from typing import Any

from msgspec.structs import replace

from quota_ops.model.history.past import Past
from quota_ops.model.plans.plan import rank_by_risk
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.stages import STAGES, StageResult, StageStatus
from quota_ops.model.runs.verification import BrokerResult
from tests.browser.drift_sample import DAYS
from tests.unit.report_sample import AGREED, APPLIED, MIB, PLAN, answered, difference

RAISED, REMOVED = (Kind.PENDING, Action.SET), (Kind.REMOVED, Action.CLEAR)
REPAIRED, LEFT = (Kind.DRIFTED, Action.SET), (Kind.UNMANAGED, Action.REPORT)


def asked(owner: str, line: int | None, reason: str | None = None) -> dict[str, Any]:
    """Return the source of a row."""
    return {"owner": owner, "file": f"{owner}.yaml", "line": line, "reason": reason, **AGREED}


REFUSED = difference(
    {"user": "clickstream"}, "producer_byte_rate", RAISED, 40 * MIB, 90 * MIB,
    **asked("web", 14, "spring campaign"),
)  # fmt: skip
STALE = difference(
    {"user": "fraud", "client-id": "scorer"}, "consumer_byte_rate", REPAIRED, 80 * MIB, 30 * MIB,
    **asked("risk", 22),
)  # fmt: skip
CHANGED = (
    difference(
        {"user": None}, "request_percentage", REPAIRED, 100.0, 25.0,
        **asked("platform", 5, "fair share for everyone"),
    ),
    difference(
        {"client-id": "old-etl"}, "consumer_byte_rate", REMOVED, 20 * MIB, None,
        **asked("etl", None),
    ),
    difference(
        {"user": "alice"}, "producer_byte_rate", RAISED, 10 * MIB, 15 * MIB,
        **asked("payments", 8, "card settlement"),
    ),
    difference(
        {"user": "alice", "client-id": None}, "consumer_byte_rate", RAISED, None, 20e6,
        **asked("payments", 12) | dict.fromkeys(AGREED),
    ),
    difference(
        {"ip": "10.20.0.7"}, "connection_creation_rate", RAISED, 20.0, 50.0,
        **asked("platform", 31, "shared gateway"),
    ),
)  # fmt: skip
UNMANAGED: tuple[Difference, ...] = tuple(
    difference({"user": name}, "producer_byte_rate", LEFT, size * MIB, None)
    for name, size in {"backup": 64, "grafana": 2, "kafka-exporter": 1, "mirror": 120}.items()
)
DIFFERENCES = tuple(sorted((REFUSED, STALE, *CHANGED, *UNMANAGED), key=rank_by_risk))
REFUSAL = "The producer_byte_rate of clickstream may not exceed 64 MiB/s."
SECONDS = (0.08, 0.11, 0.19, 0.02, 0.03)
APPLY_SAID = (
    "2 entities did not end as planned.\n"
    "The others were written. This run leaves stale rows alone; a new one is needed. "
    "Plan again to see their status: quota-ops plan demo"
)

SHOWCASE = replace(
    APPLIED,
    cluster="orders-eu",
    stages=(
        *(
            StageResult(stage, StageStatus.DONE, seconds)
            for stage, seconds in zip(STAGES[:5], SECONDS, strict=True)
        ),
        StageResult("apply", StageStatus.REFUSED, 0.09, APPLY_SAID),
        StageResult("verify", StageStatus.DONE, 0.61),
    ),
    past=Past({}, DAYS),
    plan=replace(PLAN, differences=DIFFERENCES, desired=60, actual=64),
    validated=answered(Status.ACCEPTED, REFUSED, STALE, *CHANGED),
    applied=(
        *answered(Status.REFUSED, REFUSED, error="POLICY_VIOLATION", message=REFUSAL),
        *answered(Status.STALE, STALE),
        *answered(Status.ACCEPTED, *CHANGED),
    ),
    verification=Verification(
        brokers=tuple(BrokerResult(one, f"kafka-{one}.example:9094", 2, 0) for one in (1, 2, 3)),
        verified=58,
    ),
    versions=(("quota-ops", "0.1.0"), ("python", "3.11.7"), ("kafka-python", "3.0.12")),
)  # fmt: skip
"""A run of which the broker rejected a part."""
