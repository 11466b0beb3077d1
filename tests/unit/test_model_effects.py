"""The effect of changed quotas on classes of clients, by cases and by the lookup of each client."""

import json
from collections import Counter
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.effect import ClassEffect, Effect, Limit, Risk
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.precedence.changed_limits import Change
from quota_ops.precedence.resolution import Limits
from quota_ops.report.outline.effects import list_effects
from quota_ops.stages.plan.effects import effect_json, parse_effects, read_effects
from quota_ops.store.places.json_text import json_text
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import EFFECTS
from quota_ops.store.run.folder import RunFolder
from tests.effects import find_effects
from tests.yaml_cases import load_yaml

KEY = "producer_byte_rate"
ABSENT, OTHER, NAMELESS = "absent", "other", ""
USERS, CLIENT_IDS = ("alice", 'b "b'), ("app", "x,user=alice")
ENTITIES = [
    Entity.of({kind: one for kind, one in ((USER, user), (CLIENT_ID, name)) if one != ABSENT})
    for user in (*USERS, None, ABSENT)
    for name in (*CLIENT_IDS, None, ABSENT)
    if (user, name) != (ABSENT, ABSENT)
]
VALUES = st.sampled_from([None, 1.0, 2.0])
CASES: tuple[Any, ...] = tuple(
    pytest.param(case, id=case["case"])
    for case in load_yaml(
        (Path(__file__).parents[1] / "cases" / "effects" / "classes.yaml").read_text()
    )
)
Side = tuple[float, bool] | None
"""A limit, and whether it is that of the changed quota."""


class Seen(NamedTuple):
    """The limits of clients that a quota concerns, before and after, and how many it does not."""

    others: tuple[Side, Side] | None
    nameless: tuple[Side, Side] | None
    named: Counter[tuple[Side, Side]]
    own: int


def write_and_parse(found: Mapping[Key, Effect]) -> dict[Key, Effect]:
    """Return effects as read from the JSON that has them."""
    written = json_text({"effects": [effect_json(*row, effect) for row, effect in found.items()]})
    return parse_effects(json.loads(written)["effects"])


@pytest.mark.parametrize("case", CASES)
def test_the_words_of_an_effect(case: Any) -> None:
    """A row says whom its change concerns, how, and by which other limits."""
    key = case.get("key", KEY)
    changes = {
        Key(entity, key): Change(*(None if one is None else float(one) for one in pair))
        for entity, pair in case["changes"].items()
    }
    stored = [(entity, key, float(value)) for entity, value in case.get("stored", {}).items()]
    found = find_effects(stored, changes)
    assert write_and_parse(found) == found
    assert {
        entity: None
        if (effect := found.get(Key(entity, key))) is None or effect.is_evident(key)
        else "; ".join(list_effects(effect, entity, key))
        for entity in case["changes"]
    } == case["says"]


def test_the_effect_on_a_key_of_a_newer_kafka_is_not_guessed() -> None:
    """How a broker looks up a key that quota-ops does not know is not known either."""
    unknown, known = Key("user=alice", "new_rate"), Key("user=alice", KEY)
    change = Change(None, 5.0)

    assert find_effects([], {unknown: change, known: change}).keys() == {known}
    assert find_effects([], {unknown: change}) == {}


def test_a_user_is_compared_with_the_extremes_of_defaults() -> None:
    """Of many client ids with defaults, the text has those with the highest and lowest ones."""
    ids = {f"client-id=c{number},user=<default>": float(number) for number in range(1, 31)}
    ids["client-id=other,user=<default>"] = 30.0
    found = find_effects(
        [(entity, KEY, value) for entity, value in ids.items()],
        {Key("user=alice", KEY): Change(None, 5.0)},
    )
    effect = found[Key("user=alice", KEY)]

    assert "; ".join(list_effects(effect, "user=alice", KEY)) == (
        "newly limited: user alice; cut: client ids c30, other of user alice, from 30 B/s for each "
        "client id of a user (client-id=c30,user=<default>) to 5 B/s for all client ids of a user "
        "together; may get more: client id c1 of user alice, from 1 B/s for this client id "
        "alone (client-id=c1,user=<default>) to 5 B/s for all client ids of a user together; "
        "limits between these: 28 more client ids"
    )

    changes = {Key(entity, KEY): Change(None, value) for entity, value in ids.items()}
    together = find_effects([], changes | {Key("user=alice", KEY): Change(None, 5.0)})
    assert together[Key("user=alice", KEY)] == Effect(
        (ClassEffect(None, Limit(5.0, "user=alice", (USER,)), "user=alice"),), risk=Risk(loses=True)
    ), "no client id had a default before, so all are one class"


def test_a_stored_infinity_is_kept() -> None:
    """A limit that JSON has no number for is read as it was written."""
    found = find_effects([], {Key("user=alice", KEY): Change(inf, 5.0)})

    assert write_and_parse(found) == found


@pytest.mark.parametrize(
    "client_class",
    [[None, None, 1], [5, None], [["x", "e", []], None], [None, None, None, None, "x"]],
)
def test_damaged_effects_are_named(tmp_path: Path, client_class: list[Any]) -> None:
    """A value of another type is an error with the file, never a traceback in a report."""
    effects = [["user=alice", KEY, [[client_class]]]]
    (tmp_path / EFFECTS).write_text(json.dumps({"effects": effects}))

    with pytest.raises(InvalidInput, match=f"{EFFECTS} does not have the format of quota-ops"):
        read_effects(RunFolder(open_place(tmp_path)))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=len(ENTITIES), max_size=len(ENTITIES)))
def test_an_effect_is_what_the_lookup_of_each_client_shows(
    values: list[tuple[float | None, float | None]],
) -> None:
    """Each class has the limits that a broker finds for its clients, and no client is left out."""
    changes = {
        entity: Change(*pair) for entity, pair in zip(ENTITIES, values, strict=True) if any(pair)
    }
    limits = [limits_of(changes, side) for side in ("before", "after")]
    found = find_effects(
        [(entity.text, KEY, change.before) for entity, change in changes.items() if change.before],
        {
            Key(entity.text, KEY): change
            for entity, change in changes.items()
            if change.before != change.after
        },
    )

    assert {
        entity: count_seen(found[key], entity)
        for entity in changes
        if (key := Key(entity.text, KEY)) in found
    } == {
        entity: look_up_all(limits, entity, changes)
        for entity, change in changes.items()
        if change.before != change.after
    }


def limits_of(changes: dict[Entity, Change], side: str) -> Limits:
    """Return the quotas before or after, as one client's limits are looked up in them."""
    return Limits(
        StoredQuota(entity, KEY, value)
        for entity, change in changes.items()
        if (value := getattr(change, side))
    )


def look_up_all(limits: list[Limits], entity: Entity, changes: dict[Entity, Change]) -> Seen:
    """Return what the lookups of single clients show for a changed quota."""
    names = entity.as_dict()
    user = names.get(USER)
    kept = changes | {entity: Change(None, changes[entity].after or changes[entity].before)}
    limits = [*limits, limits_of(kept, "after")]

    def look_up(client_id: str) -> tuple[Side, Side] | None:
        rungs = [
            limit.resolve(KEY, user=user or OTHER, client_id=client_id).applied for limit in limits
        ]
        sides = [
            None if rung is None or rung.value is None else (rung.value, rung.entity == entity)
            for rung in rungs
        ]
        return (sides[0], sides[1]) if any(one and one[1] for one in sides) else None

    if one := names.get(CLIENT_ID):
        seen = look_up(one)
        return Seen(None, None, Counter([seen] if seen else []), 0)
    own_types = [{USER: user}] if user else [{USER: None}, {}]
    owns = {
        one
        for one in CLIENT_IDS
        for types in own_types
        if Entity.of(types | {CLIENT_ID: one}) in changes
    }
    seen_named = {one: look_up(one) for one in CLIENT_IDS}
    return Seen(
        look_up(OTHER),
        None if CLIENT_ID in names else look_up(NAMELESS),
        Counter(filter(None, seen_named.values())),
        sum(seen_named[one] is None for one in owns),
    )


def count_seen(effect: Effect, entity: Entity) -> Seen:
    """Return what an effect says about the same clients."""

    def sides(one: ClassEffect) -> tuple[Side, Side]:
        before, after = (
            None if side is None else (side.value, side.entity == entity.text)
            for side in (one.before, one.after)
        )
        return before, after

    unnamed = {
        sends: sides(client_class)
        for client_class in effect.classes
        if client_class.client_id is None
        for sends in (True, False)
        if client_class.sends_client_id in {sends, None}
    }
    listed = Counter({sides(client_class): 0 for client_class in effect.classes})
    for client_class in effect.classes:
        listed[sides(client_class)] += client_class.client_ids
    names = entity.as_dict()
    if names.get(CLIENT_ID) is None and True in unnamed:
        listed[unnamed[True]] += len(CLIENT_IDS) - listed.total() - effect.own_client_ids
    return Seen(unnamed.get(True), unnamed.get(False), +listed, effect.own_client_ids)


def test_equal_limits_are_shared_by_the_same_clients() -> None:
    """The text of the entity may differ, but not the value, nor who shares it."""
    limit = Limit(5.0, "user=alice", (USER,))
    assert limit.equals(Limit(5.0, "user=<default>", (USER,)))
    assert not limit.equals(Limit(5.0, "user=alice", (CLIENT_ID, USER)))
    assert not limit.equals(Limit(6.0, "user=alice", (USER,)))


def test_the_json_of_an_effect_says_how_each_class_changes() -> None:
    """A program that reads the report has no need to compare the limits; infinity is text there."""
    before, after = Limit(inf, "user=<default>", (USER,)), Limit(5.0, "user=alice", (USER,))
    effect = Effect(
        (ClassEffect(before, after, "user=alice"), ClassEffect(None, None)), risk=Risk(loses=True)
    )
    told = effect.as_json(KEY)

    first, second = told.pop("classes")
    assert (first["before"], first["after"], first["change"]) == (
        {"value": "inf", "entity": "user=<default>"},
        {"value": 5.0, "entity": "user=alice"},
        "newly limited",
    )
    assert (second["before"], second["after"], second["change"]) == (None, None, "same")
    assert told.pop("risk")["loses"] is True
    assert told == {
        name: getattr(effect, name) for name in effect.__struct_fields__[1:] if name != "risk"
    }
