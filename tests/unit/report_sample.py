"""Reports shared by the tests of every format: a complete one, and one with hostile names."""

from typing import Any

from msgspec.structs import replace

from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.plan import Plan
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.stages import STAGES, StageResult, StageStatus
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
MIB = 2.0**20
PAYMENTS = {"owner": "payments", "file": "payments.yaml"}
AGREED = {"commit": "9c0ffee1d2", "run": "2026-11-14T10-00-00Z", "since": "2026-11-14T10:00:09Z"}


def difference(
    names: dict[str, str | None],
    key: str,
    judged: tuple[Kind, Action],
    before: float | None,
    after: float | None,
    **more: Any,
) -> Difference:
    """Return a difference of the sample cluster; whatever is not given is unknown."""
    nothing_known = (None,) * len(Difference._fields[7:])
    where = (CLUSTER_ID, Entity.of(names).text, key, *judged)
    return Difference(*where, before, after, *nothing_known)._replace(**more)


DEFAULT_RAISED = difference(
    {"user": None}, "request_percentage", (Kind.DRIFTED, Action.SET), 100.0, 25.0,
    verified=25.0, owner="platform", reason="fair share", file="platform.yaml", line=5, **AGREED,
)  # fmt: skip
ETL_REMOVED = difference(
    {"client-id": "old-etl"}, "consumer_byte_rate", (Kind.REMOVED, Action.CLEAR), 20 * MIB, None,
    verified=20 * MIB, owner="etl", file="etl.yaml", **AGREED,
)  # fmt: skip
ALICE_RAISED = difference(
    {"user": "alice"}, "producer_byte_rate", (Kind.PENDING, Action.SET), 10 * MIB, 15 * MIB,
    verified=10 * MIB, reason="card settlement", line=8, **PAYMENTS, **AGREED,
)  # fmt: skip
ALICE_OTHERS = difference(
    {"user": "alice", "client-id": None}, "consumer_byte_rate", (Kind.PENDING, Action.SET),
    None, 20e6, line=12, **PAYMENTS,
)  # fmt: skip
LEGACY = difference(
    {"user": "legacy"}, "producer_byte_rate", (Kind.UNMANAGED, Action.REPORT), 5 * MIB, None
)
OPERATOR = difference(
    {"user": "kafka-operator"}, "request_percentage", (Kind.UNMANAGED, Action.REPORT), 400.0, None,
    hands_off="protected by cluster.yaml",
)  # fmt: skip
DIFFERENCES = (DEFAULT_RAISED, ALICE_OTHERS, ETL_REMOVED, ALICE_RAISED, OPERATOR, LEGACY)

PLAN = Plan(
    policy=Policy(cluster="demo", cluster_id=CLUSTER_ID, connection="demo"),
    commit="a1b2c3d4e5f6",
    differences=DIFFERENCES,
    guards=(),
    desired=412,
    actual=414,
    batches=1,
    ledger="000007.parquet",
)
DEFAULT_TOUCHED = GuardFinding(
    "default_touched",
    "user=<default> request_percentage would change; a default applies to many clients",
)


def stages(**ends: StageStatus | str) -> tuple[StageResult, ...]:
    """Return all eight stages, done in half a second, except those given with another end."""
    return tuple(
        StageResult(stage, StageStatus(ends.get(stage, StageStatus.DONE)), 0.031)
        for stage in STAGES
    )


def answered(status: Status, *rows: Difference, **more: Any) -> tuple[Outcome, ...]:
    """Return one outcome for each row."""
    return tuple(Outcome(1, row.entity, (row.key,), status, **more) for row in rows)


PLANNED = Report(
    cluster="demo",
    cluster_id=CLUSTER_ID,
    run="2026-11-21T10-15-00Z",
    provenance=Provenance("a1b2c3d4e5f6", CommitSource.COMPARED),
    started="2026-11-21T10:15:00Z",
    finished="2026-11-21T10:15:04Z",
    stages=stages(apply="not run", verify="not run"),
    plan=PLAN.with_guards((DEFAULT_TOUCHED,)),
    validated=answered(Status.ACCEPTED, *DIFFERENCES[:4]),
    applied=(),
    versions=(("quota-ops", "0.1.0"), ("Kafka", "4.3.1")),
    writes=False,
)
"""A plan that a guard holds back."""

BROKERS = tuple(BrokerResult(number, f"kafka-{number}:9094", 2, 0) for number in (1, 2, 3))
APPLIED = replace(
    PLANNED,
    stages=stages(),
    plan=PLAN.with_guards((replace(DEFAULT_TOUCHED, allowed="agreed with platform"),)),
    applied=answered(Status.ACCEPTED, *DIFFERENCES[:4]),
    verification=Verification(brokers=BROKERS, verified=413),
    writes=True,
)
"""A run that did all it wanted."""

TROUBLED = replace(
    APPLIED,
    stages=stages(apply="refused", verify="failed"),
    plan=PLAN,
    applied=(
        *answered(Status.ACCEPTED, DEFAULT_RAISED, ALICE_RAISED),
        *answered(
            Status.REFUSED,
            ETL_REMOVED,
            code=44,
            error="POLICY_VIOLATION",
            message="Quotas of etl are frozen.",
        ),
        *answered(Status.UNKNOWN, ALICE_OTHERS),
    ),
    verification=Verification(
        brokers=(
            *BROKERS[:2],
            BrokerResult(3, "kafka-3:9094", 6, 1),
            BrokerResult(4, "kafka-4:9094", 6, None, "timed out"),
        ),
        verdicts=(
            RowVerdict(
                ALICE_RAISED.entity, ALICE_RAISED.key, 15 * MIB, Verdict.DIFFERS, ((3, 10 * MIB),)
            ),
        ),
        verified=411,
    ),
)
"""A run in which every broker answered otherwise."""

FAILED = replace(
    PLANNED,
    cluster_id=None,
    plan=None,
    stages=(
        StageResult("check", StageStatus.DONE, 0.2),
        StageResult(
            "describe",
            StageStatus.FAILED,
            5.0,
            "connection demo: no broker responds at kafka-1:9094 (timed out after 5 s).\n"
            "  Check bootstrap.servers and the network.",
        ),
        *(StageResult(stage, StageStatus.NOT_RUN) for stage in STAGES[2:7]),
        StageResult("report", StageStatus.DONE, 0.1),
    ),
    validated=(),
)
"""A run that did not come to the cluster."""


REFUSED = replace(
    PLANNED,
    stages=stages(validate="refused", apply="not run", verify="not run"),
    plan=replace(PLAN, ledger=None),
    validated=(
        *answered(Status.ACCEPTED, DEFAULT_RAISED, ETL_REMOVED, ALICE_RAISED),
        *answered(
            Status.REFUSED, ALICE_OTHERS, code=42, error="INVALID_REQUEST", message="Not here."
        ),
    ),
)
"""A first plan that the broker would not accept."""


def many_changes(rows: int) -> Report:
    """Return a run that changed that many rows."""
    changes = tuple(ALICE_RAISED._replace(entity=f"user=user-{at}") for at in range(rows))
    return replace(
        APPLIED,
        plan=replace(PLAN, differences=changes),
        applied=answered(Status.ACCEPTED, *changes),
        validated=answered(Status.ACCEPTED, *changes),
    )
