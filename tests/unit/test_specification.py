"""KIP-546's flags, and which entities a filter accepts."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.specification import (
    format_flags,
    parse_entity,
    parse_exactly,
    parse_filter,
)
from quota_ops.model.text import is_visible
from tests.yaml_cases import load_yaml

CASES = tuple(
    pytest.param(case, id=case["case"])
    for case in load_yaml(
        (Path(__file__).parents[1] / "cases" / "specification" / "filters.yaml").read_text("utf-8")
    )
)


@pytest.mark.parametrize("case", CASES)
def test_flags_are_a_filter_or_an_error(case: Any) -> None:
    """Flags give the parts of a filter, or the broker's own error."""
    assert read(case) == case.get("error", case.get("parts"))


def read(case: Any) -> Any:
    """Return the parts of the filter, or the error, in the form that the cases use."""
    flags = [case.get(name, []) for name in ("names", "defaults", "any")]
    try:
        found = parse_filter(*flags, strict=False)
    except InvalidInput as error:
        return str(error)
    return [[part.type, part.match.name, part.name] for part in found.parts]


def test_flags_are_an_entity() -> None:
    """Names and defaults give one entity, whatever its types."""
    assert parse_entity(["client-id=app"], ["user"]) == Entity.of(
        {"client-id": "app", "user": None}
    )
    assert parse_entity(["group=a"], []) == Entity.of({"group": "a"})


HOSTILE = st.text(st.sampled_from("a,=\"\\' \n$é")) | st.text(st.characters(codec="utf-8"))
ODD_NAMES = HOSTILE | st.lists(
    HOSTILE | st.sampled_from([",user=", ",client-id=", ",ip=", ",clientid=", "<default>", '="'])
).map("".join)


@example(Entity.of({"user": "a,client-id=b"}))
@example(Entity.of({"user": "a,clientid=b"}))
@given(
    st.dictionaries(st.sampled_from(["user", "client-id", "ip"]), st.none() | ODD_NAMES, min_size=1)
    .filter(lambda names: "/" not in (names.get("ip") or ""))  # a network
    .map(Entity.of)
)
def test_flags_that_are_shown_mean_the_same_entity(entity: Entity) -> None:
    """The flags in a printed command name that entity in a shell, and hide no character of it."""
    words = shlex.split(format_flags(entity))
    assert is_visible(format_flags(entity))
    names, defaults = (
        [word for flag, word in zip(words[::2], words[1::2], strict=True) if flag == option]
        for option in ("--names", "--defaults")
    )

    assert parse_entity(names, defaults) == entity
    assert parse_entity([entity.text], []) == entity, "as every screen shows it"


@pytest.mark.parametrize(
    ("names", "defaults", "message"),
    [
        (
            [],
            [],
            "no entity is specified\n  Add --names user=alice, or --defaults user for the default.",
        ),
        (["user=a"], ["user"], "user is specified twice; an entity has one name of each type"),
    ],
)
def test_flags_that_are_no_entity(names: list[str], defaults: list[str], message: str) -> None:
    """No entity, or a type twice, is rejected before a broker would guess."""
    with pytest.raises(InvalidInput) as error:
        parse_entity(names, defaults)

    assert str(error.value) == message


NAMES = st.none() | st.sampled_from(["alice", "", "<default>", "a,b"])
ENTITIES = st.dictionaries(st.sampled_from(["user", "client-id", "ip", "group"]), NAMES, min_size=1)
PARTS = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip"]), NAMES | st.just(Match.ANY), max_size=3
)


def oracle(parts: Mapping[str, Any], names: Mapping[str, str | None], *, strict: bool) -> bool:
    """Restate KIP-546: each part must match; strict allows no further types."""
    for kind, wanted in parts.items():
        if kind not in names or (wanted is not Match.ANY and names[kind] != wanted):
            return False
    return not strict or set(names) == set(parts)


@given(parts=PARTS, names=ENTITIES, strict=st.booleans())
def test_a_filter_lets_through_what_the_text_of_kip_546_says(
    *, parts: dict[str, Any], names: dict[str, str | None], strict: bool
) -> None:
    """`accepts` follows KIP-546 for every filter and entity.

    A filter without parts accepts every entity; a strict one without parts accepts none.
    """
    made = EntityFilter(
        tuple(
            FilterPart(kind, Match.ANY)
            if name is Match.ANY
            else FilterPart(kind, Match.DEFAULT if name is None else Match.EXACT, name)
            for kind, name in parts.items()
        ),
        strict,
    )

    assert made.accepts(Entity.of(names)) == oracle(parts, names, strict=strict)


def test_flags_that_mean_exactly_somebody() -> None:
    """The named types and no others, as under `protect`; an empty entity is an error."""
    wanted = parse_exactly(["user=alice"], [], ["client-id"])

    assert wanted.text == "client-id=<any>,user=alice"
    assert not wanted.accepts(Entity.of({"user": "alice"}))
    with pytest.raises(InvalidInput, match="no entity is specified"):
        parse_exactly([], [], [])
    with pytest.raises(InvalidInput) as error:
        parse_exactly(["user=alice", "client-id="], [], [])
    assert str(error.value) == (
        "--names client-id= is empty\n"
        "  Kafka stores no empty name. For the default, use --defaults client-id."
    )


def test_a_name_that_no_cluster_can_store() -> None:
    """A name can have as many bytes as the protocol allows, and is shown shortened."""
    longest = "é" * 16_383 + "x"
    assert parse_exactly([f"user={longest}"], [], []).parts[0].name == longest
    for parse in (
        lambda names: parse_exactly(names, [], []),
        lambda names: parse_entity(names, []),
        lambda names: parse_filter(names, [], [], strict=False),
    ):
        with pytest.raises(InvalidInput) as error:
            parse([f"user={longest}x"])
        assert str(error.value) == (
            f"--names {'é' * 40!r}… is 32,768 bytes long\n  Use a shorter name: Kafka allows "
            f"32,767 bytes."
        )


def test_a_name_that_is_no_text() -> None:
    """Bytes that are not UTF-8 are not a Kafka name, and are shown as bytes."""
    with pytest.raises(InvalidInput) as error:
        parse_entity(["user=caf\udce9"], [])

    assert error.value.message == "--names 'user=caf\\udce9' is not UTF-8"


def test_a_type_that_is_there_may_be_meant() -> None:
    """A snapshot of another broker can be filtered by that broker's types too."""
    wanted = parse_filter((), (), ("client-id-prefix",), strict=False, others={"client-id-prefix"})

    assert wanted.text == "client-id-prefix=<any>"
