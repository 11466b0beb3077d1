"""The text after a rollback: what Git does next, and how to keep the old value."""

import shlex
from itertools import pairwise

import pytest

from quota_ops.model.commit import rollback_of
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.specification import parse_entity
from quota_ops.model.runs.rollback import Rollback, Undone
from quota_ops.report.outline.rollback import list_next_steps

AGAIN = "sets it again once a person overrides guard takeover for 1 quota."


def told(*entities: Entity, commit: str | None = "c2", foreign: bool = False) -> list[str]:
    """Return the text after a rollback of one row per entity, the first unmanaged before."""
    rows = [
        Undone(entity.text, "k", 1.0, 2.0, None, verified=True, foreign=foreign and not number)
        for number, entity in enumerate(entities)
    ]
    rollback = Rollback("that", commit, "digest", "anna", "", tuple(rows))
    return list(list_next_steps(rollback, "demo", "this"))


@pytest.mark.parametrize(
    "entity",
    [
        Entity.of({"user": "alice"}),
        Entity.of({"user": "a<b", "client-id": "it's, an app"}),
        Entity.of({"user": "<default>"}),
        Entity.of({"user": None}),
        Entity.of({"user": "CN=alice,O=shop", "client-id": None}),
        Entity.of({"user": "a,client-id=b"}),
        Entity.of({"user": "a,clientid=b", "client-id": 'c",ip=d'}),
        Entity.of({"user": '"quoted"'}),
    ],
    ids=str,
)
def test_each_entity_can_be_held(entity: Entity) -> None:
    """The printed command names that entity, whatever its name, and a default too."""
    command = told(entity)[-1].partition(": ")[2]
    words = shlex.split(command)
    names, defaults = (
        [word for flag, word in pairwise(words) if flag == option]
        for option in ("--names", "--defaults")
    )

    assert words[:3] == ["quota-ops", "hold", "demo"]
    assert parse_entity(names, defaults) == entity


def test_many_are_held_by_their_run() -> None:
    """One command holds 2,000 entities, and one whose name cannot be typed: those of the rollback.

    The run that is rolled back may have written others, which are left unchanged.
    """
    entities = [Entity.of({"user": f"user-{number}"}) for number in range(2_000)]
    hold = "quota-ops hold demo --run this --until 12h --reason TEXT"

    to_hold = "To let runs repair drift of all others, hold"
    assert told(*entities)[1:] == [f"{to_hold} these 2,000 entities, once they are written: {hold}"]
    assert told(Entity.of({"user": "a\x1b"}))[1:] == [f"{to_hold} it, once it is written: {hold}"]


def test_what_was_somebody_elses_is_asked_about_again() -> None:
    """The ledger forgets a takeover that is rolled back, so the guard blocks it again."""
    alice, bob = Entity.of({"user": "alice"}), Entity.of({"user": "bob"})

    assert told(alice, bob, foreign=True)[0].endswith(f"one at a new commit {AGAIN}")
    assert told(alice, bob, commit=None, foreign=True)[0].endswith(
        f"otherwise the next run {AGAIN}"
    )
    assert told(alice)[0].endswith("one at a new commit sets it again.")


def test_the_rollback_of_a_rollback_names_no_commit_to_revert() -> None:
    """A rollback has no commit: a plan shows whether Git agrees."""
    assert told(Entity.of({"user": "alice"}), commit=rollback_of("run-1"))[0] == (
        "To keep it, change these quotas in Git too. The run that is rolled back was a rollback "
        "itself, so there is no commit to revert: quota-ops plan demo shows whether Git differs. "
        "If it does, a run at a commit that was applied before is blocked by guard "
        "went_back; one at a new commit sets it again."
    )
