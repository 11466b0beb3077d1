"""rollback of rows that were unmanaged before a run wrote them."""

from typing import Any

import pytest

from tests.broker.going_back import kinds, plan_back, reconcile, run_at, write
from tests.lab import Lab
from tests.writing import State

KEY = "producer_byte_rate"


@pytest.mark.parametrize(
    ("ours", "asked", "policy", "reverted"),
    [
        (None, 6.0, {}, "unmanaged"),
        (None, None, {"clear_unmanaged": True}, "unmanaged"),
        (4.0, 6.0, {}, "takeover"),
        (4.0, None, {}, "takeover"),
    ],
    ids=["takeover", "unmanaged", "conflict", "changed since"],
)
def test_what_was_taken_over_is_given_back(
    ours: float | None, asked: float | None, policy: dict[str, Any], reverted: str, lab: Lab
) -> None:
    """A returned row is unmanaged: no revert clears it, and another takeover needs approval."""
    first: State = {"user=bob": {KEY: 1.0}} | ({"user=alice": {KEY: ours}} if ours else {})
    reconcile(lab, first, "c1")
    lab.put({"user=alice": {KEY: 5.0}})
    state = {"user=bob": {KEY: 1.0}} | ({"user=alice": {KEY: asked}} if asked else {})
    run = reconcile(lab, state, "c2", **policy)
    write(lab, plan_back(lab, run))

    assert lab.stored() == {"user=bob": {KEY: 1.0}, "user=alice": {KEY: 5.0}}
    assert lab.known() == {"user=bob": {KEY: 1.0}}
    lab.desire(first)
    assert kinds(run_at(lab, "c3", "plan")) == {"user=alice": reverted}
