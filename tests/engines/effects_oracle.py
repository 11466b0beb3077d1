"""The effects on clients, by the resolver of one client: the reference for both engines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from quota_ops.model.plans.client_effects import ClientEffectRow, OwnerEffects
from quota_ops.model.plans.effect import ClassEffect, Limit, LimitChange
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, QUOTA_KEYS
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.precedence.resolution import Limits, Rung

Stored = Mapping[Key, float]


def find_expected(
    clients: Iterable[Any], before: Stored, after: Stored
) -> Iterator[ClientEffectRow]:
    """Yield every limit by the resolver of one client, applied to both sides."""
    sides = [
        Limits(
            StoredQuota(Entity.parse(entity), key, value) for (entity, key), value in one.items()
        )
        for one in (before, after)
    ]
    found = {
        (client, key): [
            side.resolve(key, user=client.user, client_id=client.client_id) for side in sides
        ]
        for client in clients
        for key in CLIENT_KEYS
    }
    used: dict[tuple[str, ...], float] = {}
    for (row, key), (_, last) in found.items():
        if (rate := getattr(row, key)) is not None:
            shared = (key, *last.shared_by.values())
            used[shared] = used.get(shared, 0.0) + rate
    for (row, key), (first, last) in found.items():
        old, new = (_limit(key, side.applied) for side in (first, last))
        verdict = ClassEffect(_decided(first.applied), _decided(last.applied)).change(key)
        use = None if new is None else used.get((key, *last.shared_by.values()))
        left = None if new is None or use is None else new - use
        yield ClientEffectRow(
            last.names[USER],
            last.names[CLIENT_ID],
            row.owner,
            key,
            verdict,
            old,
            *_decides(first.applied),
            new,
            *_decides(last.applied),
            getattr(row, key),
            use,
            left,
            left is not None and left < 0,
        )


def _limit(key: str, rung: Rung | None) -> float | None:
    value = rung.value if rung else None
    return value if value is not None and value < QUOTA_KEYS[key].unlimited else None


def _decides(rung: Rung | None) -> tuple[str | None, str | None]:
    return (rung.level.name, rung.entity.text) if rung else (None, None)


def _decided(rung: Rung | None) -> Limit | None:
    """Return the limit as the lines of a plan have it, which say what happens to classes."""
    if rung is None or rung.value is None:
        return None
    return Limit(rung.value, rung.entity.text, rung.level.types)


def count_expected(
    clients: Sequence[Any], rows: Sequence[ClientEffectRow]
) -> Iterator[OwnerEffects]:
    """Yield the numbers of each owner, by sets of clients."""
    losing = {"newly limited", "cut", "may get less"}
    shared = {"may get more", "shared differently"}
    for owner in {client.owner for client in clients}:
        own = [row for row in rows if row.owner == owner]
        by_verdict = {
            verdict: {row[:2] for row in own if row.verdict == verdict} for verdict in LimitChange
        }
        yield OwnerEffects(
            owner,
            clients=sum(client.owner == owner for client in clients),
            keys=len(own),
            newly_limited=len(by_verdict[LimitChange.NEWLY_LIMITED]),
            cut=len(by_verdict[LimitChange.CUT]),
            raised=len(by_verdict[LimitChange.RAISED]),
            no_longer_limited=len(by_verdict[LimitChange.NO_LONGER_LIMITED]),
            losing=len({row[:2] for row in own if row.verdict in losing}),
            throttled=len(
                {row[:2] for row in own if row.throttled and row.verdict in losing | shared}
            ),
            shared_differently=len(by_verdict[LimitChange.SHARED_DIFFERENTLY]),
            may_get_less=len(by_verdict[LimitChange.MAY_GET_LESS]),
            may_get_more=len(by_verdict[LimitChange.MAY_GET_MORE]),
        )
