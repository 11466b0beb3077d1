"""A hold: its text, how long it lasts, and which entities it covers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.plans.hold import Hold, find_hold, select_current_holds
from quota_ops.model.plans.policy import EVERYTHING
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.model.stored import from_json, to_json

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
USERS = EVERYTHING[0]


def user(name: str) -> EntityFilter:
    """Return exactly one user."""
    return parse_exactly([f"user={name}"], [], [])


def hold(who: EntityFilter | EntityGroup, hours: float, at: datetime = NOW) -> Hold:
    """Return a hold for so many hours."""
    return Hold(who, at + timedelta(hours=hours), "anna", "a load test", at)


ALICE = hold(user("alice"), 2)


def test_a_group_is_held_by_its_name() -> None:
    """A hold of a run's entities covers exactly these, is read back, and ends by the same name."""
    who = EntityGroup("run 866f", frozenset({"user=alice", "user=<default>"}))
    held = hold(who, 2)
    released = replace(held, who=EntityGroup("run 866f", frozenset()), until=NOW)

    read = from_json(Hold, to_json(Hold, held))
    assert isinstance(read.who, EntityGroup)
    assert (read, read.who.entities, held.as_json()["who"]) == (held, who.entities, "run 866f")
    assert find_hold([held], Entity.parse("user=alice")) == held
    assert find_hold([held], Entity.parse("user=bob")) is None
    assert select_current_holds([held, released], NOW) == ()
    bob = EntityGroup("run 1", frozenset({"user=bob"}))
    filters: tuple[EntityFilter | EntityGroup, ...] = (user("alice"), USERS, user("bob"), bob)
    assert [one.overlaps(who) for one in filters] == [True, True, False, False]
    assert [who.overlaps(one) for one in filters] == [True, True, False, False]
    assert [one.covers(who) for one in filters] == [False, True, False, False]
    assert [who.covers(one) for one in filters] == [True, False, False, False]


def test_what_a_hold_says() -> None:
    """A hold has its end, author and reason in one line; it is stored as JSON and read back."""
    assert ALICE.text == "held until 2026-11-21 05:12 UTC by anna: a load test"
    assert ALICE.as_json() == {
        "who": "user=alice",
        "until": "2026-11-21T05:12:00Z",
        "by": "anna",
        "login": None,
        "reason": "a load test",
        "at": "2026-11-21T03:12:00Z",
    }
    assert from_json(Hold, to_json(Hold, ALICE)) == ALICE
    assert (ALICE.is_release, hold(user("alice"), 0).is_release) == (False, True)


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"by": None},
            {"reason": 7},
            {"until": "soon"},
            {"at": "2026-11-21"},
            {"who": 1},
            {"but": []},
        ),
        {"who": {"type": "EntityFilter", "parts": [], "strict": True, "except": "bob"}},
        {"who": {"type": "EntityGroup", "text": "", "entities": ["alice"]}},
    ],
)
def test_what_is_no_hold(wrong: dict[str, Any]) -> None:
    """Other values than those of a stored hold are an error."""
    with pytest.raises(ValueError):  # noqa: PT011 - of msgspec or of an entity
        from_json(Hold, to_json(Hold, ALICE) | wrong)


def test_the_last_word_counts() -> None:
    """A later entry on the same entities extends, shortens or ends a hold."""
    bob, released = hold(user("bob"), 1), hold(user("bob"), 0, NOW + timedelta(minutes=1))
    longer = replace(ALICE, until=NOW + timedelta(hours=9))

    assert select_current_holds([ALICE, bob], NOW) == (ALICE, bob)
    assert select_current_holds([ALICE, bob, longer, released], NOW + timedelta(minutes=2)) == (
        longer,
    )
    assert select_current_holds([ALICE, bob], NOW + timedelta(hours=2)) == ()
    assert select_current_holds([ALICE, hold(USERS, 0)], NOW) == (ALICE,)
    by_clock_ahead = hold(user("alice"), 0, NOW + timedelta(hours=1))
    assert select_current_holds([ALICE, by_clock_ahead], NOW) == ()


def test_whom_a_hold_is_on() -> None:
    """A hold covers exactly the entity types that it names; the longest of several applies."""
    everybody = hold(USERS, 1)
    holds = (ALICE, everybody)

    assert find_hold(holds, Entity.of({"user": "alice"})) == ALICE
    assert find_hold(holds, Entity.of({"user": None})) == everybody
    assert find_hold(holds, Entity.of({"user": "alice", "client-id": "app"})) is None
