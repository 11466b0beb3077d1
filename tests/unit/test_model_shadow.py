"""What hides a limit, checked against every possible client."""

from collections.abc import Iterable, Iterator
from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.findings.shadowing import Hiding
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from tests.unit.resolve_oracle import ABSENT, DEFAULT, limit, tags

USERS, CLIENTS = ("alice", "bob"), ("app", "etl")
FRESH = "zoe"
"""A name that no entity bears stands for all such names: they all meet the same entities."""
NAMES = st.sampled_from((ABSENT, DEFAULT))
ENTITIES = st.tuples(NAMES | st.sampled_from(USERS), NAMES | st.sampled_from(CLIENTS)).filter(
    lambda places: places != (ABSENT, ABSENT)
)
Places = tuple[str, str]


def entity(places: Places) -> Entity:
    """Return the entity with this user and client id."""
    named = zip((USER, CLIENT_ID), places, strict=True)
    return Entity.of(
        {kind: None if place == DEFAULT else place for kind, place in named if place != ABSENT}
    )


def met_by(stored: Iterable[Places]) -> Iterator[tuple[Places, str]]:
    """Return, for each possible client, the entity whose limit applies, and the client id."""
    values = {places: float(at) for at, places in enumerate(stored)}
    found = {value: places for places, value in values.items()}
    for user, client in product((*USERS, FRESH), (*CLIENTS, FRESH, "")):
        held = limit(values, tags(values, user, client))
        if held is not None:
            yield found[held], client


@given(st.sets(ENTITIES, max_size=12))
@example({(ABSENT, "app"), ("alice", ABSENT), (DEFAULT, DEFAULT), (DEFAULT, ABSENT)})
def test_a_limit_is_hidden_when_no_possible_client_meets_it(stored: set[Places]) -> None:
    """Exactly those limits are hidden that apply to no client, or to none with a client id."""
    met = set(met_by(stored))
    anybody = {places for places, _ in met}
    named = {places for places, client in met if client}
    hiding = Hiding({entity(places) for places in stored if DEFAULT in places})

    for places in stored:
        shadow = hiding.shadow(entity(places))
        assert (shadow is None) == (places in named)
        if shadow is not None:
            assert shadow.entity == entity(places)
            assert shadow.nameless == (places in anybody)
            assert entity(places).types[0] in hiding.types


@given(st.sets(ENTITIES, max_size=12), ENTITIES)
def test_more_quotas_hide_no_fewer(stored: set[Places], another: Places) -> None:
    """A limit hidden by the files is hidden whatever else the cluster stores."""
    few = Hiding({entity(places) for places in stored})
    more = Hiding({entity(places) for places in {*stored, another}})

    for places in stored:
        assert few.shadow(entity(places)) is None or more.shadow(entity(places)) is not None


def test_what_hides_alone_is_what_is_named() -> None:
    """If several quotas hide a limit, the finding names the first whose removal matters."""
    hiding = Hiding(
        {entity((DEFAULT, "app")), entity((DEFAULT, DEFAULT)), entity((DEFAULT, ABSENT))}
    )

    shadow = hiding.shadow(entity((ABSENT, "app")))

    assert shadow is not None
    assert shadow.by == entity((DEFAULT, "app"))


def test_addresses_hide_nothing() -> None:
    """A limit of an address is not one of a user or client, and no client has all addresses."""
    hiding = Hiding({Entity.of({IP: None}), entity((DEFAULT, ABSENT))})

    assert hiding.shadow(Entity.of({IP: "10.0.0.1"})) is None
    assert hiding.shadow(Entity.of({IP: None})) is None
