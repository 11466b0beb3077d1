"""The risks of changes, which guards compare, by the lookup of every client."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from quota_ops.model.plans.effect import NO_RISK, ClassEffect, Limit, LimitChange, Risk, number_of
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.guard_rules import EarlierRuns, judge
from quota_ops.model.plans.plan import is_cut, is_raise
from quota_ops.model.plans.policy import GuardThresholds, Policy
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity, text_of
from quota_ops.model.quotas.owners import Owner, OwnerIndex
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.precedence.changed_limits import Change
from quota_ops.precedence.effects import Ownership, find_write_effects
from quota_ops.precedence.resolution import Limits
from tests.effects import find_effects

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
NOBODY = OwnerIndex(())
POLICY = Policy("demo", "id", "demo", guards=GuardThresholds(cut_share=20, raise_factor=1.5))
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
NEAR = [entity for entity in ENTITIES if "bob" not in entity.text and "=c" not in entity.text]
DAMAGED = st.dictionaries(st.sampled_from(NEAR), CHANGED, min_size=3, max_size=8)
"""Quotas that all change, and of which some are restored; most of them concern the same clients."""


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


def list_writes(rows: Mapping[Entity, Row]) -> list[Difference]:
    """Return the changed rows as the writes of a plan."""
    return [
        Difference(
            "id",
            entity.text,
            KEY,
            Kind.DRIFTED if row.restores else Kind.PENDING,
            Action.CLEAR if row.after is None else Action.SET,
            before=row.before,
            after=row.after,
            verified=row.after if row.restores else None,
        )._replace(owner=row.changer)
        for entity, row in rows.items()
        if row.before != row.after
    ]


def find_risks(rows: Mapping[Entity, Row], owners: OwnerIndex) -> dict[Key, Risk]:
    """Return the risks of all changed rows."""
    stored = [(entity.text, KEY, row.before) for entity, row in rows.items() if row.before]
    ownership = Ownership(
        {Key(entity.text, KEY): row.owner for entity, row in rows.items() if row.before},
        {Key(entity.text, KEY): row.changer for entity, row in rows.items()},
        owners,
    )
    found = find_write_effects(stored, list_writes(rows), ownership)
    return {row: effect.risk for row, effect in found.items()}


def find_guards(rows: Mapping[Entity, Row], owners: OwnerIndex) -> list[GuardFinding]:
    """Return the guards that block the plan of these rows."""
    return [
        *judge(
            list_writes(rows),
            policy=POLICY,
            commit=None,
            desired=1,
            earlier=EarlierRuns(0, {}, None, ()),
            risks=find_risks(rows, owners),
        )
    ]


def add_up_pairs(classes: Iterable[ClassEffect]) -> float:
    """Return the largest factor by which the pairs of a user that leave its limit rise together."""
    together: dict[str, dict[str, float]] = defaultdict(dict)
    for effect in classes:
        before, after = effect.before, effect.after
        if before and after and before.types == (USER,) and len(after.types) > 1:
            limits = number_of(KEY, before), number_of(KEY, after)
            if inf not in limits and effect.user and effect.user in after.entity:
                together[effect.user][after.entity] = limits[1] / limits[0]
    return max((sum(rises.values()) for rises in together.values()), default=1.0)


@settings(max_examples=150)
@given(QUOTAS)
def test_no_client_is_raised_cut_or_unlimited_beyond_the_risks(rows: dict[Entity, Row]) -> None:
    """The risks of a plan are exactly the worst that the lookups of all clients show.

    So a guard blocks it if and only if a class is cut, raised or unlimited beyond a threshold.
    """
    rows = {
        entity: row._replace(restores=row.restores and None not in row[:2])
        for entity, row in rows.items()
    }
    found, worst = NO_RISK, NO_RISK
    for risk in find_risks(rows, NOBODY).values():
        found = found.combine(risk)
    classes = list(list_classes(rows))
    for effect in classes:
        worst = worst.combine(effect.judge(KEY))
    worst = worst.combine(Risk(rise=add_up_pairs(classes)))

    assert found._replace(foreign=None) == worst
    guards = {finding.guard for finding in find_guards(rows, NOBODY)}
    judged = [row for row in list_writes(rows) if not row.restores]
    limits = POLICY.guards
    for guard, is_beyond, is_row in (
        ("cut", worst.cut > limits.cut_share, lambda row: is_cut(row, limits.cut_share)),
        ("raise", worst.rise > limits.raise_factor, lambda row: is_raise(row, limits.raise_factor)),
        ("unlimited", worst.unlimited, lambda row: row.before and row.after == UNLIMITED),
    ):
        assert guard in guards or not is_beyond
        assert guard not in guards or is_beyond or any(map(is_row, judged))


@settings(max_examples=150)
@given(DAMAGED)
def test_repairs_change_no_judgement(rows: dict[Entity, Row]) -> None:
    """A plan is judged as if its repairs were made: what was verified is never a raise or a cut."""
    rows = {
        entity: row._replace(restores=row.restores and row.after is not None)
        for entity, row in rows.items()
    }
    repaired = {
        entity: row._replace(before=row.after, restores=False) if row.restores else row
        for entity, row in rows.items()
    }

    assert find_guards(rows, NOBODY) == find_guards(repaired, NOBODY)


def list_foreign(rows: Mapping[Entity, Row], owners: OwnerIndex) -> set[tuple[str, str]]:
    """Return each changed row that changes a limit of another owner's clients, and that owner.

    By the lookup of each client: before, after, and after if the changed row stayed.
    """
    found = set()
    for changed, change in rows.items():
        if change.before == change.after:
            continue
        kept = change._replace(after=change.before if change.after is None else change.after)
        stays = values_of({**rows, changed: kept}, 1)
        for effect in list_classes(rows):
            user = None if effect.user is None else Entity.parse(effect.user).as_dict()[USER]
            client_id = str(effect.client_id)
            rung = stays.resolve(KEY, user=user or OTHER, client_id=client_id).applied
            deciding = {
                effect.before and effect.before.entity,
                effect.after and effect.after.entity,
            }
            if effect.before is None or changed.text not in deciding | {rung and rung.entity.text}:
                continue
            decided = Entity.parse(effect.before.entity)
            owner, names = rows[decided].owner, decided.as_dict()
            if owner in {None, change.changer} or set(names.values()) == {None}:
                continue
            is_lower = effect.after and effect.after.value < effect.before.value
            if effect.change(KEY) is LimitChange.SAME or (
                user and names.get(USER) != user and not is_lower
            ):
                continue
            client = changed if user is None and USER not in names else Entity.of({USER: user})
            by_policy = owners.find_owner(client) if user or client_id else None
            if change.changer is None or by_policy != change.changer:
                found.add((changed.text, str(owner)))
    return found


@settings(max_examples=150)
@given(QUOTAS, st.sampled_from(["payments", "search", None]))
def test_foreign_owner_blocks_what_changes_clients_of_others(
    rows: dict[Entity, Row], of_alice: str | None
) -> None:
    """The guard finds a row if and only if it changes a limit that another owner set for a client.

    A limit of a client id names no user: for a user, only a lower one counts. A client that the
    policy gives to the owner of the row is not another owner's.
    """
    rows = {entity: row._replace(restores=False) for entity, row in rows.items()}
    owners = OwnerIndex((Owner(of_alice, users=("alice",)),) if of_alice else ())
    risks = find_risks(rows, owners)
    wanted = list_foreign(rows, owners)

    found = {(row.entity, risk.foreign) for row, risk in risks.items() if risk.foreign}

    assert {row for row, _ in found} == {row for row, _ in wanted}
    assert found <= wanted
    is_blocked = any(one.guard == "foreign_owner" for one in find_guards(rows, owners))
    assert is_blocked == bool(wanted)


def test_the_client_ids_of_two_owners_are_compared() -> None:
    """Client ids that have a pair of the user do not hide those of another owner below them."""
    ids = {"a": "search", "b": "payments", "c": "search", "d": "payments"}
    stored = [(f"client-id={name}", KEY, 90.0 - at) for at, name in enumerate(ids)]
    stored.append(("client-id=b,user=alice", KEY, 5.0))
    before = {(f"client-id={name}", KEY): owner for name, owner in ids.items()}
    for owner, other in (("search", "payments"), ("payments", "search")):
        row = Key("user=alice", KEY)
        ownership = Ownership(before, {row: owner}, OwnerIndex(()))
        found = find_effects(stored, {row: Change(None, 1.0)}, ownership)
        assert found[row].risk.foreign == other


def test_a_client_id_with_a_pair_of_the_user_has_no_other_owner() -> None:
    """A user's new quota does not change a client id that keeps a quota for this user."""
    stored = [("client-id=app", KEY, 90.0), ("client-id=app,user=alice", KEY, 5.0)]
    row = Key("user=alice", KEY)
    ownership = Ownership({Key("client-id=app", KEY): "payments"}, {row: "search"}, OwnerIndex(()))
    for pair, foreign in ((stored[1:], None), ([], "payments")):
        found = find_effects([stored[0], *pair], {row: Change(None, 1.0)}, ownership)
        assert found[row].risk.foreign == foreign


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
