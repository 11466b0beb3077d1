"""Which rows can be adopted, and which are considered."""

import pytest

from quota_ops.model.plans.policy import EVERYTHING, Policy
from quota_ops.model.plans.scope import NEWLY_PROTECTED, PROTECTED, judge_scope
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.rows import DesiredRow, StoredQuota
from quota_ops.model.runs.adoption import find_adoptions

KEY = "producer_byte_rate"
USERS, OPERATOR = EVERYTHING[0], EntityFilter((FilterPart("user", Match.EXACT, "operator"),))
POLICY = Policy("demo", "id", "demo", scope=(USERS,), protect=(OPERATOR,))
STORED = tuple(
    StoredQuota(Entity.of(names), key, 5.0)
    for names, key in (
        ({"user": "alice"}, KEY),
        ({"user": "alice"}, "future_rate"),
        ({"user": "bob"}, KEY),
        ({"user": "operator"}, KEY),
        ({"user": "alice", "client-id": "app"}, KEY),
    )
)
BOB = DesiredRow("id", "user=bob", KEY, 9.0, "team", None, "team.yaml", 1)
CAROL = BOB._replace(entity="user=carol")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, {("user=bob", KEY): (BOB, None)}),
        (
            USERS,
            {
                ("user=alice", KEY): (None, None),
                ("user=alice", "future_rate"): (None, "unknown quota key"),
                ("user=bob", KEY): (BOB, None),
                ("user=operator", KEY): (None, "protected"),
            },
        ),
        (EVERYTHING[2], {("client-id=app,user=alice", KEY): (None, "outside the scope")}),
    ],
)
def test_what_may_be_adopted(
    wanted: EntityFilter | None, expected: dict[tuple[str, str], tuple[DesiredRow | None, str]]
) -> None:
    """Without names, the rows that Git declares; with names, every row that a plan could write."""
    found = find_adoptions(STORED, [BOB, CAROL], POLICY, wanted)

    assert {
        (adoption.entity, adoption.key): (adoption.declared, adoption.refusal) for adoption in found
    } == expected


def test_what_was_ours_is_not_adopted_again() -> None:
    """A row is adopted once; after that it is managed."""
    (found,) = find_adoptions(STORED, [BOB], POLICY, None)

    assert (found.adopted, found._replace(was_managed=True).adopted) == (True, False)


def test_which_rows_runs_may_write() -> None:
    """Each stored row has whether it is in scope, and why it is left alone although it is."""
    stored = (*STORED, STORED[-1]._replace(key="consumer_byte_rate"))

    def judge(applied: Policy | None) -> list[tuple[bool, str | None]]:
        return [
            (row.in_scope, row.hands_off or None) for row in judge_scope(POLICY, stored, applied)
        ]

    known = [(True, None), (True, "unknown quota key"), (True, None)]
    assert judge(None) == [*known, (True, PROTECTED), (False, None), (False, None)]
    before = Policy("demo", "id", "demo", scope=(USERS,))
    assert judge(before) == [*known, (True, NEWLY_PROTECTED), (False, None), (False, None)]
