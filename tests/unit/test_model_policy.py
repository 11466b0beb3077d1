"""Filters and policies: what they accept, and what is no policy."""

from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.plans.plan import digest
from quota_ops.model.plans.policy import EVERYTHING, Freeze, Policy, RetiredBroker, VerifyPolicy
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterIndex, FilterPart, Match
from quota_ops.model.stored import from_json, to_json

ALICE = FilterPart(USER, Match.EXACT, "alice")
ANY_USER, ANY_CLIENT = FilterPart(USER, Match.ANY), FilterPart(CLIENT_ID, Match.ANY)
DEFAULT_USER = FilterPart(USER, Match.DEFAULT)


@pytest.mark.parametrize(
    ("asked", "names_by_type", "accepted"),
    [
        ((ALICE,), {USER: "alice"}, True),
        ((ALICE,), {USER: "bob"}, False),
        ((ALICE,), {USER: None}, False),
        ((ALICE,), {CLIENT_ID: "alice"}, False),
        ((ALICE,), {USER: "alice", CLIENT_ID: "app"}, False),
        ((ANY_USER,), {USER: "bob"}, True),
        ((ANY_USER,), {USER: None}, True),
        ((DEFAULT_USER,), {USER: None}, True),
        ((DEFAULT_USER,), {USER: "<default>"}, False),
        ((ALICE, ANY_CLIENT), {USER: "alice", CLIENT_ID: None}, True),
        ((ALICE, ANY_CLIENT), {USER: "bob", CLIENT_ID: None}, False),
        ((ALICE, ANY_CLIENT), {USER: "alice"}, False),
    ],
)
def test_strict_filters(
    asked: tuple[FilterPart, ...], names_by_type: dict[str, str | None], *, accepted: bool
) -> None:
    """A filter accepts exactly the entities that have its types and matching names."""
    entity = Entity.of(names_by_type)

    assert EntityFilter(asked).accepts(entity) is accepted
    assert EntityFilter(asked[::-1]).accepts(entity) is accepted


def test_a_loose_filter_lets_further_types_through() -> None:
    """Without strict, an entity may have types that the filter does not name."""
    pair = Entity.of({USER: "alice", CLIENT_ID: "app"})
    loose = EntityFilter((ALICE,), strict=False)

    assert (loose.accepts(pair), EntityFilter((ALICE,)).accepts(pair)) == (True, False)


def test_the_order_of_parts_does_not_count() -> None:
    """A filter is a set of parts, so two orders are one filter with one text."""
    one, other = EntityFilter((ALICE, ANY_CLIENT)), EntityFilter((ANY_CLIENT, ALICE))

    assert (one, one.text) == (other, "client-id=<any>,user=alice")
    assert EntityFilter((FilterPart(USER, Match.EXACT, "<any>"),)).text == 'user="<any>"'
    assert EntityFilter((DEFAULT_USER,)).text == "user=<default>"


def test_one_filter_of_several_is_enough() -> None:
    """Several filters accept what any of them accepts; no filters accept nothing."""
    alice = Entity.of({USER: "alice"})

    assert FilterIndex([EntityFilter((DEFAULT_USER,)), EntityFilter((ALICE,))]).find_match(alice)
    assert FilterIndex([]).find_match(alice) is None


def test_everything_is_what_brokers_let_us_alter() -> None:
    """The default scope has each entity shape that a broker accepts, and no other."""
    shapes: list[dict[str, str | None]] = [
        {USER: "a"},
        {CLIENT_ID: None},
        {USER: None, CLIENT_ID: "b"},
        {IP: "10.0.0.1"},
    ]

    assert all(FilterIndex(EVERYTHING).find_match(Entity.of(shape)) for shape in shapes)
    assert FilterIndex(EVERYTHING).find_match(Entity.of({IP: "10.0.0.1", USER: "a"})) is None
    assert FilterIndex(EVERYTHING).find_match(Entity.of({"group": "a"})) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"drift": "maybe"},
        {"approval": "maybe"},
        {"verify": "maybe"},
        {"guards": {"removals": 1, "more": 2}},
        {"scope": [{"parts": [{"type": USER, "match": "some", "name": None}], "strict": True}]},
        {"scope": None},
        {"cluster_id": None},
        {"paused": 7},
        {"freeze": [{"cron": "0 18 * * fri", "zone": "UTC", "duration": "1h", "reason": "x"}]},
        {"freeze": [{"cron": "0 18 * * fri"}]},
        {"memory": {"late_writes": "24h", "cleared": 1}},
        {"memory": {"late_writes": 1, "more": 1}},
        {"retired_brokers": [{"id": "3", "reason": "scaled down"}]},
        {"no_writes": True},
    ],
)
def test_what_is_no_policy_is_refused(damage: dict[str, object]) -> None:
    """A damaged policy never becomes valid through default values."""
    values = to_json(Policy, Policy(cluster="demo", cluster_id="id", connection="demo"))

    with pytest.raises(ValueError, match=next(iter(damage))):
        from_json(Policy, values | damage)


@pytest.mark.parametrize(
    "changed",
    [
        {"paused": "broker upgrade"},
        {"freeze": (Freeze("0 18 * * fri", "UTC", 3600, "the weekend"),)},
        {"verify": VerifyPolicy.BOOTSTRAP},
    ],
)
def test_what_changes_no_write_is_not_in_the_digest(changed: dict[str, Any]) -> None:
    """When a plan may be written, and how it is verified, is not part of the approval."""
    policy = Policy(cluster="demo", cluster_id="id", connection="demo")

    assert digest(replace(policy, **changed), []) == digest(policy, [])


def test_a_retired_broker_is_part_of_what_is_judged() -> None:
    """Expecting fewer brokers is a change of the policy, and changes a plan's digest."""
    policy = Policy(cluster="demo", cluster_id="id", connection="demo")
    looser = replace(policy, retired_brokers=(RetiredBroker(3, "scaled down"),))

    assert looser.retired == {3: "scaled down"}
    assert looser.decisive_fields() != policy.decisive_fields()
    assert digest(looser, []) != digest(policy, [])
