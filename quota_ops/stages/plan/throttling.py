"""The throttling that the cuts of a plan would have caused last week.

A cut can be judged only from use that was recorded for those who will share the new limit, or for
parts of them. Brokers count at the level of the limit that applies, so a limit at a finer level
cannot be judged: the use of a user does not show that of one client id.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.errors import UseUnknown
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.effect import LOSSES, ClassEffect, Effect, number_of
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.model.text import counted
from quota_ops.model.usage.digest import DelayRow, ShareRow
from quota_ops.model.usage.seen import SeenBrokers, count_each, count_together
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.throttling import CutUse, Delays, Throttling
from quota_ops.precedence.resolution import Limits
from quota_ops.usage.source import Samples

DAYS = 7
UNKNOWN = "use is unknown"
GROUPS_AT_ONCE = 10
"""How many groups of clients are read at once: a week of each is 10,000 samples on each broker."""
MOST_GROUPS = 20
"""How many groups of clients of a default are compared by their samples: those that use most."""
HOUR = 3600
_LEAST = timedelta(days=1)
"""Less use says little: jobs run at the same hours of each day, and scrapes may miss some."""
_ANY = "\0"
"""A name that no client has: it stands for every client without a quota of its own."""
ReadUse = Callable[[str, Collection[SeriesNames], Time], Samples]
"""Reads the use of some series of a key. Raises UseUnknown."""


class PastUse(NamedTuple):
    """The highest use of each series on the recorded days, by key, on its busiest broker.

    It is infinite if what a throttled series wanted was not recorded. `days` is how many of the
    last seven complete days are recorded. `seen` is when each broker was seen on them, by key.
    """

    highest: Mapping[str, Mapping[SeriesNames, float]]
    days: int
    seen: Mapping[str, SeenBrokers]

    def find_share(self, key: str, brokers: Sequence[BrokerFacts]) -> float:
        """Return the part of the days, from 0 to 1, in which the use of a key is known."""
        return _find_share(self.seen.get(key, {}), brokers)


def _find_share(seen: SeenBrokers, brokers: Sequence[BrokerFacts]) -> float:
    """Return the part of the days in which all registered brokers were seen, if any is known."""
    seconds = count_together(seen, brokers or None)
    return min(seconds / timedelta(days=DAYS).total_seconds(), 1.0)


NOTHING_RECORDED = PastUse({}, 0, {})


class Group(NamedTuple):
    """The clients that would share a new limit, and the series with their use.

    `present` is the limit that they share now; None if they share none.
    """

    entity: Entity
    limit: float
    present: float | None
    series: tuple[SeriesNames, ...]


class Quotas(NamedTuple):
    """The stored quotas of one key, before or after the writes of a plan."""

    key: str
    entities: frozenset[Entity]
    limits: Limits

    @classmethod
    def of(cls, key: str, values: Mapping[Key, float]) -> "Quotas":
        """Return the values of this key."""
        stored = [
            StoredQuota(Entity.parse(row.entity), key, value)
            for row, value in values.items()
            if row.key == key
        ]
        return cls(key, frozenset(quota.entity for quota in stored), Limits(stored))

    def count_by(self, user: str | None, client_id: str | None) -> tuple[str, ...]:
        """Return the names under which brokers count the use of a client, sorted."""
        found = self.limits.resolve(self.key, user=user or _ANY, client_id=client_id or _ANY)
        return tuple(sorted(kind for kind, name in found.shared_by.items() if name))

    def find_entity(self, user: str | None, client_id: str | None) -> str | None:
        """Return the entity whose quota applies to a client."""
        found = self.limits.resolve(self.key, user=user or _ANY, client_id=client_id or _ANY)
        return None if found.applied is None else found.applied.entity.text

    def list_earlier(self, names: Mapping[str, str | None]) -> frozenset[Entity]:
        """Return the quotas that come before the limit of a user, or of a client id.

        They may be defaults. None comes before the limit of a pair: it has no part that they take.
        """
        return frozenset(
            entity
            for entity in self.entities
            if len(names) == 1 and entity.types != tuple(names) and USER in entity.types
            if all(name in {names.get(kind, name), None} for kind, name in entity.parts)
        )


def find_throttling(
    writes: Sequence[Difference],
    effects: Mapping[Key, Effect],
    before: Mapping[Key, float],
    after: Mapping[Key, float],
    *,
    read: ReadUse,
    step: int,
    brokers: Sequence[BrokerFacts],
    now: datetime,
    past: PastUse = NOTHING_RECORDED,
) -> Throttling:
    """Return what the cuts among the writes would have done in the last seven days.

    `step` is the interval of the scrapes in seconds. `brokers` are the registered ones: the use on
    those that Prometheus does not scrape is unknown.
    Which clients a default applies to is known from `past`.
    """
    groups: dict[Key, list[Group | str]] = {}
    below: dict[Key, int] = {}
    sides: dict[str, tuple[Quotas, Quotas]] = {}
    for row in writes:
        if row.is_return or not loses(effects, row.id):
            continue
        if row.key not in sides:
            sides[row.key] = Quotas.of(row.key, before), Quotas.of(row.key, after)
        effect = effects[row.id]
        losing = [each for each in effect.classes if each.change(row.key) in LOSSES]
        groups[row.id] = []
        for each in losing:
            found, quiet = find_groups(each, *sides[row.key], past)
            groups[row.id] += found
            below[row.id] = below.get(row.id, 0) + quiet
        if effect.between or not losing:
            groups[row.id].append("not all of its clients are known")
    known: dict[str, dict[str, Delays | str]] = {}
    try:
        for key in sides:
            wanted = {
                group.entity: group
                for row, found in groups.items()
                for group in found
                if row.key == key and isinstance(group, Group)
            }
            known[key] = _simulate(key, wanted.values(), read, step=step, brokers=brokers, end=now)
    except UseUnknown as error:
        cuts = tuple(CutUse(*row, why=UNKNOWN) for row in groups)
        return Throttling(DAYS, iso_utc(now), cuts, error.message)
    return Throttling(
        DAYS,
        iso_utc(now),
        tuple(
            _judge_row(row, found, known[row.key])._replace(
                below=below.get(row, 0), recorded=past.find_share(row.key, brokers)
            )
            for row, found in groups.items()
        ),
    )


def loses(effects: Mapping[Key, Effect], row: Key) -> bool:
    """Return whether a write cuts or newly limits users or client ids."""
    return row in effects and effects[row].risk.loses


def find_groups(
    losing: ClassEffect, before: Quotas, after: Quotas, past: PastUse
) -> tuple[list[Group | str], int]:
    """Return the groups of a class whose use may be above its limit, or why that is unknown.

    The number is how many more groups stayed below the limit on the recorded days.
    """
    limit, series = losing.after, past.highest.get(before.key, {})
    if limit is None or not _applies_to_many(losing, limit.types):
        return [find_group(losing, before, after)], 0
    if not series:
        return [f"{limit.entity} applies to many clients, and no use of past days is recorded"], 0
    found: dict[Entity, tuple[float, Group]] = {}
    whys: dict[str, None] = {}
    quiet = 0
    for each in _list_members(losing, limit.types, series, before, after):
        group = find_group(each, before, after)
        if isinstance(group, str):
            whys[group] = None
        elif (most := sum(series.get(name, 0.0) for name in group.series)) > limit.value:
            found[group.entity] = most, group
        else:
            quiet += 1
    highest = sorted(found.values(), key=lambda known: (-known[0], str(known[1].entity)))
    if (rest := len(highest) - MOST_GROUPS) > 0:
        whys[f"{rest:,} more used more, and only the {MOST_GROUPS} highest are compared"] = None
    if past.days < DAYS:
        whys[f"only {past.days} of the last {DAYS} days are recorded"] = None
    return [*(group for _, group in highest[:MOST_GROUPS]), *whys], quiet


def _applies_to_many(losing: ClassEffect, types: Sequence[str]) -> bool:
    is_named = {USER: losing.user is not None, CLIENT_ID: losing.client_ids == 1}
    return not all(is_named[kind] for kind in types)


def _list_members(
    losing: ClassEffect,
    types: Sequence[str],
    series: Collection[SeriesNames],
    before: Quotas,
    after: Quotas,
) -> Iterator[ClassEffect]:
    """Yield each group of clients of a class that has a series, as a class of its own."""
    entities = [limit and limit.entity for limit in (losing.before, losing.after)]
    known = {
        tuple(
            name if kind in types else None
            for kind, name in zip((USER, CLIENT_ID), each, strict=True)
        )
        for each in series
    }
    for user, client_id in sorted(known, key=repr):
        if (user is None) is (USER in types) or (client_id is None) is (CLIENT_ID in types):
            continue
        member = replace(
            losing,
            user=losing.user if user is None else Entity.of({USER: user}).text,
            client_id=losing.client_id
            if client_id is None
            else Entity.of({CLIENT_ID: client_id}).text,
            client_ids=1 if client_id is not None else losing.client_ids,
        )
        names = _parse_name(member.user), _parse_name(member.client_id)
        if [side.find_entity(*names) for side in (before, after)] == entities:
            yield member


def find_group(losing: ClassEffect, before: Quotas, after: Quotas) -> Group | str:
    """Return who would share the limit of a class with it, or why that cannot be determined."""
    limit = losing.after
    if limit is None:
        return "no limit applies"
    user, client_id = _parse_name(losing.user), _parse_name(losing.client_id)
    names = {kind: {USER: user, CLIENT_ID: client_id}[kind] for kind in limit.types}
    if None in names.values() or (CLIENT_ID in names and losing.client_ids > 1):
        return f"{limit.entity} applies to many clients"
    if not before.entities:
        return f"brokers measure this use only while the cluster stores a {before.key}"
    counted = before.count_by(user, client_id)
    if not {*counted} >= {*names}:
        return f"brokers counted its use by {_join(counted)}, not by {_join(limit.types)}"
    earlier = before.list_earlier(names)
    if why := _explain_move(earlier, after.list_earlier(names)):
        return why
    pairs = [
        name
        for entity in earlier
        if None not in (name := SeriesNames(*map(entity.as_dict().get, (USER, CLIENT_ID))))
        if after.count_by(*name) == limit.types
    ]
    own = SeriesNames(names.get(USER), names.get(CLIENT_ID))
    series = tuple(dict.fromkeys([own, *pairs]))
    has_one = losing.before is not None and len(series) == 1
    present = number_of(before.key, losing.before) if has_one else None
    return Group(Entity.of(names), limit.value, present, series)


def _explain_move(before: Collection[Entity], after: Collection[Entity]) -> str | None:
    """Return why use that moves to or from quotas that come first cannot be determined."""
    if {*after} - {*before}:
        return "a part of its use gets another limit, and how much was not recorded"
    if any(entity.has_default or len(entity.types) == 1 for entity in {*before} - {*after}):
        return "more clients would share this limit, and their use is not known by name"
    return None


def _join(types: Sequence[str]) -> str:
    return " and ".join(sorted(types, reverse=True))


def _parse_name(text: str | None) -> str | None:
    """Return the name in a text such as `user=alice`."""
    return None if text is None else Entity.parse(text).parts[0][1]


def _judge_row(
    row: Key, groups: Sequence[Group | str], known: Mapping[str, Delays | str]
) -> CutUse:
    found = [group if isinstance(group, str) else known[str(group.entity)] for group in groups]
    delays = dict.fromkeys(each for each in found if isinstance(each, Delays))
    whys = [each for each in found if isinstance(each, str)]
    return CutUse(*row, tuple(delays), whys[0] if whys else None)


def _simulate(
    key: str,
    groups: Collection[Group],
    read: ReadUse,
    *,
    step: int,
    brokers: Sequence[BrokerFacts],
    end: datetime,
) -> dict[str, Delays | str]:
    """Return the delays of each group by its entity, or why they are not known."""
    from quota_ops.sql.embedded_usage import find_delays  # DuckDB

    time = Time(end - timedelta(days=DAYS), end)
    rows: dict[str, list[DelayRow]] = {str(group.entity): [] for group in groups}
    throttled: set[SeriesNames] = set()
    wanted = list(groups)
    for some in (wanted[at : at + GROUPS_AT_ONCE] for at in range(0, len(wanted), GROUPS_AT_ONCE)):
        samples = read(key, {name for group in some for name in group.series}, time)
        throttled.update(samples.throttled)
        for row in find_delays(samples.rates, samples.up, list_shares(key, some), step):
            rows[row.shared_by].append(row)
    found: dict[str, Delays | str] = {}
    for group in groups:
        shared_by = str(group.entity)
        delays = _summarize(shared_by, rows[shared_by], brokers)
        if isinstance(delays, Delays) and not (
            delays.delayed or throttled.isdisjoint(group.series)
        ):
            delays = f"{shared_by} was throttled, and brokers do not record what it wanted then"
        found[shared_by] = delays
    return found


def list_shares(key: str, groups: Collection[Group]) -> list[ShareRow]:
    """Return the series that share the limit of each group."""
    return [
        ShareRow(str(group.entity), key, *name, group.limit, group.present)
        for group in groups
        for name in group.series
    ]


def _summarize(
    shared_by: str, rows: Sequence[DelayRow], brokers: Sequence[BrokerFacts]
) -> Delays | str:
    if not rows:
        return f"no use of {shared_by} was recorded in the last {DAYS} days"
    seen, registered = {row.broker: row.seen for row in rows}, len(brokers)
    longest = max(count_each(seen).values())
    if longest < _LEAST.total_seconds():
        minutes = counted(round(longest / 60), "minute")
        known = f"{longest / HOUR:.1f} hours" if longest > HOUR else minutes
        return f"the use of {shared_by} is known for {known} only"
    if len(rows) < registered and not any(row.delayed for row in rows):
        unknown = registered - len(rows)
        return f"the use on {unknown} of {counted(registered, 'broker')} is unknown"
    if 0 < registered < len(rows) and not any(row.delayed for row in rows):
        return f"{counted(len(rows), 'broker')} were scraped and {registered} registered"
    row = max(rows, key=lambda row: (row.delayed, row.least, row.highest, row.broker))
    highest = max(row.highest for row in rows)
    share = _find_share(seen, brokers)
    return Delays(
        shared_by, row.broker, row.least, row.delayed, row.longest, row.at_present, highest, share
    )
