"""A rollback returns what a run verifiably changed and nothing has changed since."""

from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.commit import Provenance, named, rollback_of, short
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import Key, LedgerRow
from quota_ops.model.runs.rollback import NOT_OURS, ONLY_REPORTED, Rollback, Undone
from tests.yaml_cases import load_yaml

CASES = load_yaml(
    (Path(__file__).parents[1] / "cases" / "rollback" / "rows.yaml").read_text("utf-8")
)
ENTITY, KEY = "user=alice", "producer_byte_rate"
ROW = Undone(ENTITY, KEY, 10.0, 15.0, "payments", verified=True)


def rollback(*rows: Undone) -> Rollback:
    """Return a rollback of these rows."""
    return Rollback("that", "c1", "digest", "anna", "INC-31", rows)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_goes_back(case: dict[str, Any]) -> None:
    """A row goes back if it was read back and still has the value that the run set."""
    where, now = Key(ENTITY, KEY), case.get("now")
    known = {}
    if said := case.get("known"):
        origin = (said["commit"], said["run"], "2026-11-21T10:00:00Z")
        known[where] = LedgerRow("id", *where, said["value"], "verified", None, None, *origin)

    met = rollback(ROW._replace(**case["was"])).compare_with_cluster(
        {} if now is None else {where: now}, known, lambda _entity, _key: case.get("unwritable")
    )

    assert met.rows == (ROW._replace(**case["was"], now=now, left=case["left"]),)
    assert (met.taken, met.left) == ((met.rows, ()) if case["left"] is None else ((), met.rows))


@pytest.mark.parametrize(
    ("kind", "action", "also", "left"),
    [
        (Kind.PENDING, Action.SET, {}, None),
        (Kind.REMOVED, Action.CLEAR, {}, None),
        (Kind.PENDING, Action.REPORT, {"hands_off": "protected"}, "protected"),
        (Kind.PENDING, Action.HELD, {"held": "held by anna"}, "held by anna"),
        (Kind.UNMANAGED, Action.REPORT, {}, NOT_OURS),
        (Kind.DRIFTED, Action.REPORT, {}, ONLY_REPORTED),
    ],
)
def test_what_no_plan_writes_stays(
    kind: Kind, action: Action, also: dict[str, Any], left: str | None
) -> None:
    """A row that the diff only reports stays, with the reason."""
    moved = ROW._replace(key="consumer_byte_rate", left="moved")
    row = Difference("id", ENTITY, KEY, kind, action, 15.0, 10.0, *(None,) * 10)

    planned = rollback(ROW, moved).planned([row._replace(**also)])

    assert planned.rows == (ROW._replace(left=left), moved)


def test_a_rollback_in_the_place_of_a_commit() -> None:
    """A commit is shortened as Git does it; a rollback keeps the name of its run."""
    name = rollback_of("2026-11-21T10-00-00Z-7f3a")

    assert (short("c0ffee1d2e3"), named("c0ffee1d2e3")) == ("c0ffee1", "commit c0ffee1")
    assert short(name) == named(name) == "rollback of 2026-11-21T10-00-00Z-7f3a"
    assert (Provenance.given(name).commit, Provenance.given(None)) == (name, Provenance())
