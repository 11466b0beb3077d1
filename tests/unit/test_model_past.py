"""What happened before a run: whether drift is new, and who altered a quota."""

from typing import Any

import pytest

from quota_ops.model.history.history import DayHistory, QuotaHistory
from quota_ops.model.history.past import Past, select_past
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.rows import Key
from tests.unit.report_sample import MIB, difference

RATE = "producer_byte_rate"
DRIFTED = difference({"user": "alice"}, RATE, (Kind.DRIFTED, Action.SET), 20 * MIB, 10 * MIB)
PENDING = difference({"user": "bob"}, RATE, (Kind.PENDING, Action.SET), 20 * MIB, 10 * MIB)
LOOKED = DayHistory("demo", "2026-11-20", 24, 24, *(0,) * 5, *(None,) * 10)
FAILED = LOOKED._replace(looks=0)


def known(**fields: object) -> QuotaHistory:
    """Return the history of alice's rate; what is not given is null."""
    nothing = dict.fromkeys(QuotaHistory._fields, None)
    place = {"cluster": "demo", "entity": "user=alice", "key": RATE, "drifts": 1, "times_seen": 1}
    return QuotaHistory(**nothing | place | fields)  # type: ignore[arg-type]


def past(*days: DayHistory, trouble: str | None = None, **fields: Any) -> Past:
    """Return a past in which alice's rate has a history."""
    quota = known(**fields)
    return Past({Key(quota.entity, quota.key): quota}, days, trouble)


@pytest.mark.parametrize(
    ("before", "row", "is_new"),
    [
        (Past(days=(LOOKED,)), DRIFTED, True),
        (past(LOOKED), DRIFTED, True),
        (past(LOOKED, drifted_since="2026-11-19T10:00:00Z"), DRIFTED, False),
        (past(FAILED), DRIFTED, None),
        (past(LOOKED, trouble="damaged"), DRIFTED, None),
        (past(LOOKED), PENDING, None),
    ],
)
def test_whether_drift_is_new(before: Past, row: object, is_new: bool | None) -> None:  # noqa: FBT001
    """Drift is new if no run found it since it was last in sync, and a run has looked."""
    assert before.is_new(row) is is_new  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({}, False),
        ({"altered_at": "2026-11-20T10:00:00Z", "altered_value": 20 * MIB}, True),
        ({"altered_at": "2026-11-20T10:00:00Z", "altered_value": 30 * MIB}, False),
        (
            {
                "altered_at": "2026-11-20T10:00:00Z",
                "altered_value": 20 * MIB,
                "set_at": "2026-11-21T10:00:00Z",
            },
            False,
        ),
    ],
)
def test_who_altered_a_quota(fields: dict[str, Any], is_found: bool) -> None:  # noqa: FBT001
    """An alter explains a value that is still stored, unless a run set the quota later."""
    before = past(LOOKED, **fields)

    assert before.find_alter(DRIFTED) == (known(**fields) if is_found else None)
    assert before.find_alter(PENDING) is None


def test_what_is_kept_of_a_history() -> None:
    """A report keeps the quotas that differ, and the newest days."""
    other = known(entity="user=carol")
    days = (LOOKED, LOOKED._replace(date="2026-11-21"))

    assert select_past([known(), other], days, [DRIFTED, PENDING], 1) == Past(
        {Key("user=alice", RATE): known()}, days[1:]
    )


def test_when_a_quota_last_agreed() -> None:
    """The run before found new drift of a quota of Git in order; otherwise the ledger knows."""
    ledger, compared = "2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z"
    row = DRIFTED._replace(since=ledger)
    new = Past(days=(LOOKED,), compared=compared)
    old = past(LOOKED, drifted_since="2026-11-19T10:00:00Z")

    assert new.find_last_agreement(row) == compared
    assert Past(days=(LOOKED,)).find_last_agreement(row) == ledger
    assert old.find_last_agreement(row) == ledger
    assert new.find_last_agreement(row._replace(after=None)) == ledger
    assert new.find_last_agreement(DRIFTED) == compared
    assert old.find_last_agreement(DRIFTED) is None
