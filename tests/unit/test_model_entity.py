"""Entities and their one text form, for any name that a broker accepts."""

import json
import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.text import UNSEEN

names = st.text(st.characters(exclude_categories=["Cs"]))
types = st.sampled_from(ENTITY_TYPES) | names.filter(bool)
entities = st.dictionaries(types, names | st.none(), max_size=4).map(Entity.of)

HOSTILE = (
    "<default>",
    "\0",
    "a\nb",
    "\x1b[31m",
    'say "hi"',
    "back\\slash",
    "a,user=b",
    " ",
    "\u202e",
    "red\u2764\ufe0f",
    "\u3164",
)


@given(entities)
@example(Entity.of({USER: '"', CLIENT_ID: "<default>", IP: None}))
@example(Entity.of({"": "", "a=b": ",", '"': "\\"}))
def test_text_reads_back(entity: Entity) -> None:
    """Whatever the names are, the text is read back as the same entity."""
    assert Entity.parse(entity.text) == entity


@given(entities, entities)
def test_one_entity_one_text(one: Entity, other: Entity) -> None:
    """Two entities share a text only if they are one entity: rows are joined by it."""
    assert (one == other) == (one.text == other.text)


@given(entities)
def test_text_is_one_harmless_line(entity: Entity) -> None:
    """Nothing in a name can end a line, move a cursor, hide text or be invisible itself."""
    assert entity.text.isprintable()
    assert UNSEEN.search(entity.text) is None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_a_json_string(name: str) -> None:
    """A name with anything but plain printable characters is quoted, also one like a default."""
    text = Entity.of({USER: name}).text

    assert text.startswith('user="')
    assert json.loads(text.removeprefix("user=")) == name


@pytest.mark.parametrize(
    ("names_by_type", "text"),
    [
        ({USER: "alice"}, "user=alice"),
        ({USER: None}, "user=<default>"),
        ({USER: "alice", CLIENT_ID: None}, "client-id=<default>,user=alice"),
        ({CLIENT_ID: "app", USER: "alice"}, "client-id=app,user=alice"),
        ({IP: "2001:db8::1"}, "ip=2001:db8::1"),
        ({USER: "CN=alice,O=shop"}, 'user="CN=alice,O=shop"'),
        ({USER: "Ünïcode-日本"}, "user=Ünïcode-日本"),
        ({USER: ""}, 'user=""'),
        ({USER: "a b"}, 'user="a b"'),
        ({USER: "a\u3164"}, 'user="a\\u3164"'),
        ({USER: "\u0085\U000e0001"}, 'user="\\u0085\\udb40\\udc01"'),
        ({}, ""),
    ],
)
def test_texts(names_by_type: dict[str, str | None], text: str) -> None:
    """Parts are ordered by type; plain names are written plainly."""
    entity = Entity.of(names_by_type)

    assert (entity.text, str(entity), entity.as_dict()) == (text, text, names_by_type)


@pytest.mark.parametrize(
    "text",
    [
        "alice",
        "user",
        "user=",
        "=alice",
        "user=alice,",
        "user=alice,client-id=app",
        "user=alice,user=alice",
        "user=a b",
        'user="alice"',
        'user="a',
        'user="\\x"',
        '"user"=alice',
        "user=<Default>",
    ],
)
def test_what_no_entity_writes_is_refused(text: str) -> None:
    """Only one spelling is accepted, so a row has only one text."""
    with pytest.raises(ValueError, match=r".") as refused:
        Entity.parse(text)

    assert str(refused.value) == f"not an entity text: {text!r}"


@pytest.mark.parametrize(
    ("entity", "kinds", "has_default", "user_first"),
    [
        (Entity.of({IP: None}), (IP,), True, ((IP, None),)),
        (
            Entity.of({USER: "a", CLIENT_ID: "b"}),
            (CLIENT_ID, USER),
            False,
            ((USER, "a"), (CLIENT_ID, "b")),
        ),
        (
            Entity.of({USER: "a", CLIENT_ID: None}),
            (CLIENT_ID, USER),
            True,
            ((USER, "a"), (CLIENT_ID, None)),
        ),
    ],
)
def test_what_an_entity_says(
    entity: Entity, kinds: tuple[str, ...], user_first: object, *, has_default: bool
) -> None:
    """An entity knows its types, whether it is a default, and its description."""
    assert (entity.types, entity.has_default, entity.user_first) == (kinds, has_default, user_first)


@given(entities)
def test_entities_travel_between_processes(entity: Entity) -> None:
    """An entity is a plain value: after pickling, it is equal and has the same hash."""
    assert {entity: 1}[pickle.loads(pickle.dumps(entity))] == 1  # noqa: S301 - our own bytes
