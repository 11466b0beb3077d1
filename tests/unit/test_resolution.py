"""Which limit applies to a client: the cases, and an oracle that follows the broker's own steps."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.precedence.resolution import LEVELS, Limits, Resolution, find_level
from tests.unit.resolve_oracle import ABSENT, DEFAULT, limit, tags
from tests.yaml_cases import load_yaml

PRODUCER = "producer_byte_rate"
CASES = tuple(
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted((Path(__file__).parents[1] / "cases" / "resolve").glob("*.yaml"))
    for case in load_yaml(path.read_text("utf-8"))
)


def resolve(case: Any) -> Resolution:
    """Resolve a case; `other` is stored under another key than the resolved one."""
    ip = case.get("ip")
    key = case.get("key", "connection_creation_rate" if ip else PRODUCER)
    other = "consumer_byte_rate" if key == PRODUCER else PRODUCER
    limits = Limits(
        StoredQuota(Entity.parse(text), under, float(value))
        for under, part in ((key, "stored"), (other, "other"))
        for text, value in case.get(part, {}).items()
    )
    if ip:
        return limits.resolve_address(key, ip=ip)
    return limits.resolve(
        key, user=case.get("user", "alice"), client_id=case.get("client_id", "app")
    )


EXPECTED = ("holds", "overrides", "escapes", "shared_by", "by_name", "spellings", "foreign")


@pytest.mark.parametrize("case", CASES)
def test_a_client_meets_its_limit(case: Any) -> None:
    """Each case gives the limit, what it overrides, what is exempt, and who shares it."""
    found = resolve(case)

    assert {
        "holds": found.applied and [found.applied.value, found.applied.level.name],
        "overrides": [rung.level.name for rung in found.overridden],
        "escapes": [rung.level.name for rung in found.escaped],
        "shared_by": list(found.shared_by.values()),
        "by_name": [str(rung.entity) for rung in found.by_name],
        "spellings": [spelling.value for spelling in found.spellings],
        "foreign": [quota.entity.text for quota in found.foreign],
    } == {"overrides": [], "escapes": [], "by_name": [], "spellings": [], "foreign": []} | {
        "shared_by": [case.get("ip")],
        **{name: case[name] for name in case if name in EXPECTED},
    }


@pytest.mark.parametrize("second", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("first", LEVELS, ids=lambda level: level.name)
def test_of_two_levels_the_one_of_lower_rank_holds(first: Any, second: Any) -> None:
    """Of any two levels, the first in KIP-248's order applies and overrides the other."""
    names = {"user": "alice", "client-id": "app"}
    stored = [
        StoredQuota(level.entity(names), PRODUCER, float(level.rank)) for level in (first, second)
    ]

    found = Limits(stored).resolve(PRODUCER, user="alice", client_id="app")

    levels = sorted({first, second}, key=lambda level: level.rank)
    assert found.applied is not None
    assert [found.applied, *found.overridden] == [
        rung for rung in found.rungs if rung.level in levels and rung.value == rung.level.rank
    ]
    assert found.applied.level == levels[0]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_an_entity_knows_its_level(level: Any) -> None:
    """The entity of each level is mapped back to that level."""
    assert find_level(level.entity({"user": "alice", "client-id": "app"})) == level


@pytest.mark.parametrize("text", ["client-id-prefix=a", "ip=<default>", "ip=::1,user=a"])
def test_other_entities_have_no_level(text: str) -> None:
    """An entity not of users or client ids has none of the eight levels."""
    assert find_level(Entity.parse(text)) is None


NAMES = st.sampled_from(["a", "b", " *%"])
STORED = st.dictionaries(
    st.tuples(
        st.one_of(NAMES, st.sampled_from([DEFAULT, ABSENT])),
        st.one_of(NAMES, st.sampled_from([DEFAULT, ABSENT])),
    ).filter(lambda place: place != (ABSENT, ABSENT)),
    st.integers(1, 99).map(float),
)


def entity_of(user: str, client_id: str) -> Entity:
    """Return the entity at a place of the oracle's map."""
    parts = {"user": user, "client-id": client_id}
    return Entity.of(
        {kind: None if name == DEFAULT else name for kind, name in parts.items() if name != ABSENT}
    )


@given(STORED, NAMES, st.one_of(NAMES, st.just("")))
def test_the_ladder_agrees_with_the_brokers_own_two_steps(
    stored: dict[tuple[str, str], float], user: str, client: str
) -> None:
    """Whatever is stored, value and sharers equal those from tags first and limit then."""
    limits = Limits(
        StoredQuota(entity_of(*place), PRODUCER, value) for place, value in stored.items()
    )

    found = limits.resolve(PRODUCER, user=user, client_id=client)

    expected = tags(stored, user, client)
    assert tuple(found.shared_by.values()) == expected
    assert (found.applied and found.applied.value) == limit(stored, expected)
