"""Ceilings: what an owner may declare, for one quota and in total."""

from typing import Any

import pytest

from quota_ops.model.plans.ceilings import Ceiling, exceeds_ceiling, judge_ceilings
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.guard_rules import is_blocked_by
from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.strict_policy import Grounds, combine_strictly
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.stored import from_json, to_json

KEY = "producer_byte_rate"


def policy(each: float | None = None, total: float | None = None) -> Policy:
    """Return a policy with the ceilings of the owner pay."""
    limits: list[Any] = [() if value is None else ((KEY, value),) for value in (each, total)]
    return Policy("demo", "id", "demo", ceilings=(Ceiling("pay", *limits),))


def row(
    user: str, before: float | None, after: float | None, owner: str = "pay", **more: Any
) -> Difference:
    """Return a difference of one user's producer_byte_rate."""
    action = Action.CLEAR if after is None else Action.SET
    values = Difference("id", f"user={user}", KEY, Kind.PENDING, action, before=before, after=after)
    return values._replace(owner=owner, **more)


def format_message(message: str) -> str:
    """Fill in the key, and the end of the sentence."""
    end = "its 9,999 B/s" if "together" in message else "may declare"
    return message.format(KEY, end)


RAISED = row("a", 1000.0, 3000.0)


@pytest.mark.parametrize(
    ("rows", "new", "applied", "message"),
    [
        ([RAISED], policy(3000.0), None, None),
        ([RAISED], policy(2000.0), None, "user=a {} would be 3 kB/s, above the 2 kB/s that pay {}"),
        (
            [RAISED, row("b", None, 5000.0)],
            policy(4000.0),
            policy(2000.0),
            "user=a {} would be 3 kB/s, above the 2 kB/s that pay {}, and 1 more",
        ),
        ([row("a", 9000.0, 3000.0, "search")], policy(2000.0), None, None),
        ([row("a", 9000.0, None)], policy(2000.0), None, None),
        ([row("a", 9000.0, 3000.0, is_return=True)], policy(2000.0), None, None),
        (
            [row("a", 1000.0, 1500.0, returns_to=3000.0)],
            policy(2000.0),
            None,
            "user=a {} would be 3 kB/s, above the 2 kB/s that pay {}",
        ),
        ([RAISED], policy(total=10000.0), None, None),
        ([RAISED], policy(total=9999.0), None, "pay would have 10 kB/s of {} together, above {}"),
        ([row("a", 9000.0, 3000.0)], policy(total=9999.0), None, None),
        (
            [RAISED],
            policy(3000.0),
            policy(total=9999.0),
            "pay would have 10 kB/s of {} together, above {}",
        ),
    ],
)  # fmt: skip
def test_rows_above_a_ceiling(
    rows: list[Difference], new: Policy, applied: Policy | None, message: str | None
) -> None:
    """A row above the ceiling of its owner is found, and a raise beyond the owner's total."""
    ceilings = combine_strictly(applied, new).ceilings
    found = list(judge_ceilings(rows, {("pay", KEY): 10000.0}, ceilings))

    assert [guard.message for guard in found] == ([format_message(message)] if message else [])
    assert {guard.guard for guard in found} <= {Guard.ABOVE_CEILING.value}


def test_the_row_of_a_ceiling_needs_attention() -> None:
    """The row that is above the ceiling is the one that the guard blocks."""
    assert is_blocked_by(Guard.ABOVE_CEILING, RAISED, Grounds(policy(2000.0)))
    assert not is_blocked_by(Guard.ABOVE_CEILING, RAISED, Grounds(policy(3000.0)))
    strict = Grounds(policy(3000.0), (policy(2000.0),))
    assert is_blocked_by(Guard.ABOVE_CEILING, RAISED, strict), "as the last applied policy says"
    assert not exceeds_ceiling(row("a", 5000.0, None), policy(2000.0).ceilings)


def test_ceilings_are_part_of_a_recorded_policy() -> None:
    """A policy with ceilings is the same after it was recorded, and its digest covers them."""
    made = policy(1.5, 2.0)

    assert from_json(Policy, to_json(Policy, made)) == made
    assert made.digest_fields() != policy(1.5).digest_fields()
