"""The risks of changes, which guards compare, by the lookup of every client."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from quota_ops.model.plans.effect import NO_RISK, ClassEffect, Limit, LimitChange, Risk, number_of
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity, text_of
from quota_ops.model.quotas.owners import OwnerIndex
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.precedence.changed_limits import Change
from quota_ops.precedence.effects import Ownership, find_effects, find_write_effects
from quota_ops.precedence.resolution import Limits

KEY = "producer_byte_rate"
UNLIMITED = QUOTA_KEYS[KEY].unlimited
ABSENT, OTHER = "absent", "other"
USERS, CLIENT_IDS = ("alice", "bob"), ("a", "b", "c", "d")
ENTITIES = [
    Entity.of({kind: one for kind, one in ((USER, user), (CLIENT_ID, name)) if one != ABSENT})
    for user in (*USERS, None, ABSENT)
    for name in (*CLIENT_IDS, None, ABSENT)
    if (user, name) != (ABSENT, ABSENT)
]
VALUES = st.sampled_from([None, 1.0, 2.0, 3.0, 5.0, 8.0, 100.0, UNLIMITED])
OWNERS = st.sampled_from([None, "payments", "search", "web"])


class Row(NamedTuple):
    """A quota before and after, its owners, and whether it was last verified with `after`."""

    before: float | None
    after: float | None
    owner: str | None
    changer: str | None
    restores: bool


STORED = st.builds(
    lambda value, owner: Row(value, value, owner, owner, restores=False), VALUES, OWNERS
)
CHANGED = st.builds(Row, VALUES, VALUES, OWNERS, OWNERS, st.sampled_from([False, False, True]))


@st.composite
def quotas(draw: st.DrawFn) -> dict[Entity, Row]:
    """Draw a cluster's quotas, of which a plan changes a few."""
    some = draw(st.lists(st.sampled_from(ENTITIES), min_size=1, max_size=12, unique=True))
    changed = draw(st.integers(1, 3))
    return {entity: draw(CHANGED if at < changed else STORED) for at, entity in enumerate(some)}


@st.composite
def taken_from_defaults(draw: st.DrawFn) -> dict[Entity, Row]:
    """Draw defaults of client ids, and a user who is taken out of them or returns to them."""
    defaults = {Entity.of({CLIENT_ID: name}): draw(STORED) for name in CLIENT_IDS}
    pairs = st.sampled_from([Entity.of({USER: None, CLIENT_ID: name}) for name in CLIENT_IDS])
    for pair in draw(st.lists(pairs, max_size=2)):
        defaults[pair] = draw(STORED)
    own = st.sampled_from([Entity.of({USER: "alice", CLIENT_ID: name}) for name in CLIENT_IDS])
    for pair in draw(st.lists(own, max_size=1)):
        defaults[pair] = draw(STORED)
    user = Entity.of({USER: "alice"} | draw(st.sampled_from([{}, {CLIENT_ID: None}])))
    row, leaves = draw(CHANGED)._replace(restores=False), draw(st.booleans())
    return defaults | {user: row._replace(after=None) if leaves else row._replace(before=None)}


QUOTAS = st.one_of(quotas(), taken_from_defaults())


def values_of(rows: Mapping[Entity, Row], side: int) -> Limits:
    """Return the quotas before, with what was last verified, or after."""
    return Limits(
        StoredQuota(entity, KEY, value)
        for entity, row in rows.items()
        if (value := row.after if side or row.restores else row.before) is not None
    )


def list_classes(rows: Mapping[Entity, Row]) -> Iterator[ClassEffect]:
    """Yield every class of clients with the limits that the lookups of its clients find."""
    limits = [values_of(rows, side) for side in (0, 1)]
    for user in (*USERS, OTHER):
        for client_id in (*CLIENT_IDS, OTHER, ""):
            found = [limit.resolve(KEY, user=user, client_id=client_id).applied for limit in limits]
            before, after = (
                None
                if rung is None or rung.value is None
                else Limit(rung.value, rung.entity.text, rung.entity.types)
                for rung in found
            )
            who = None if user == OTHER else text_of(((USER, user),))
            yield ClassEffect(before, after, who, client_id)


def find_risks(rows: Mapping[Entity, Row]) -> dict[Key, Risk]:
    """Return the risks of all changed rows."""
    writes = [
        Difference.of_values(
            ("id", entity.text, KEY),
            Kind.DRIFTED if row.restores else Kind.PENDING,
            Action.CLEAR if row.after is None else Action.SET,
            before=row.before,
            after=row.after,
            verified=row.after if row.restores else None,
        )
        for entity, row in rows.items()
        if row.before != row.after
    ]
    stored = [(entity.text, KEY, row.before) for entity, row in rows.items() if row.before]
    ownership = Ownership(
        {Key(entity.text, KEY): row.owner for entity, row in rows.items() if row.before},
        {Key(entity.text, KEY): row.changer for entity, row in rows.items()},
        OwnerIndex(()),
    )
    found = find_write_effects(stored, writes, ownership)
    return {row: effect.risk for row, effect in found.items()}


def is_kept(rows: Mapping[Entity, Row], limit: Limit) -> bool:
    """Return whether a quota that decided is still there afterwards."""
    return rows[Entity.parse(limit.entity)].after is not None


@settings(max_examples=300)
@given(QUOTAS)
def test_no_client_is_raised_cut_or_unlimited_beyond_the_risks(rows: dict[Entity, Row]) -> None:
    """The risks of a plan are exactly the worst that the lookups of all clients show."""
    rows = {
        entity: row._replace(restores=row.restores and None not in row[:2])
        for entity, row in rows.items()
    }
    found, worst = NO_RISK, NO_RISK
    for risk in find_risks(rows).values():
        found = found.combine(risk)
    for effect in list_classes(rows):
        worst = worst.combine(effect.judge(KEY))

    assert found._replace(foreign=None) == worst


@settings(max_examples=300)
@given(QUOTAS)
def test_no_client_of_another_owner_is_cut_unseen(rows: dict[Entity, Row]) -> None:
    """A client that another owner's new row takes from its limit to a lower one is found."""
    rows = {entity: row._replace(restores=False) for entity, row in rows.items()}
    foreign = {risk.foreign for risk in find_risks(rows).values()} - {None}
    cut, changed = set(), set()
    for effect in list_classes(rows):
        if effect.before is None or effect.change(KEY) is LimitChange.SAME:
            continue
        decided = Entity.parse(effect.before.entity)
        owner = rows[decided].owner
        if owner is None or all(name is None for _, name in decided.parts):
            continue
        changed.add(owner)
        changer = effect.after and rows[Entity.parse(effect.after.entity)].changer
        is_lower = number_of(KEY, effect.after) < number_of(KEY, effect.before)
        if is_lower and is_kept(rows, effect.before) and changer != owner:
            cut.add(owner)

    assert foreign <= changed
    assert not cut or foreign


def test_the_client_ids_of_two_owners_are_compared() -> None:
    """Client ids that have a pair of the user do not hide those of another owner below them."""
    ids = {"a": "search", "b": "payments", "c": "search", "d": "payments"}
    stored = [(f"client-id={name}", KEY, 90.0 - at) for at, name in enumerate(ids)]
    stored.append(("client-id=b,user=alice", KEY, 5.0))
    before = {Key(f"client-id={name}", KEY): owner for name, owner in ids.items()}
    for owner, other in (("search", "payments"), ("payments", "search")):
        row = Key("user=alice", KEY)
        ownership = Ownership(before, {row: owner}, OwnerIndex(()))
        found = find_effects(stored, {row: Change(None, 1.0)}, ownership)
        assert found[row].risk.foreign == other


def test_the_owners_of_addresses() -> None:
    """A changed limit of an address is another owner's if the row got another owner."""
    row = Key("ip=10.0.0.1", "connection_creation_rate")
    changes = {row: Change(10.0, 9.0)}
    moved = Ownership({row: "edge"}, {row: "search"}, OwnerIndex(()))

    found = find_effects([], changes, moved)[row]
    assert found.risk.foreign == "edge"
    kept = find_effects([], changes, moved._replace(after=moved.before))[row]
    assert kept.risk.foreign is None
    assert [found.is_evident(row.key) for found in (kept, found)] == [True, False]
    assert Entity.parse(row.entity).types == (IP,)


def test_a_stored_zero_rises_by_no_factor() -> None:
    """Kafka before 3 stored 0; a new limit above it is no multiple of it."""
    effect = ClassEffect(Limit(0.0, "user=a", (USER,)), Limit(5.0, "user=a", (USER,)))
    assert effect.judge(KEY) == NO_RISK
    assert number_of(KEY, None) == inf
