"""A row of ours that seems to have moved is asked for a second time before anyone is told."""

from collections.abc import Mapping
from itertools import cycle
from time import monotonic, sleep

import pyarrow as pa

from quota_ops.kafka.cluster import Cluster
from quota_ops.ledger import VERIFIED
from quota_ops.model.entity import Entity
from quota_ops.model.errors import ClusterTrouble
from quota_ops.model.quota import same
from quota_ops.model.rows import StoredQuota
from quota_ops.snapshot import Snapshot
from quota_ops.stages.held import Held, held_by

PATIENCE = 5.0
"""Seconds in which two answers must come to agree."""
LIMIT = 2.0
"""Seconds that one broker is given to answer."""

Stored = tuple[StoredQuota, ...]
Moved = frozenset[tuple[str, str, str]]
"""Rows that are not as they were verified: entity, key and what is held now."""


def confirmed(
    cluster: Cluster | Snapshot, ledger: pa.Table
) -> tuple[Stored, tuple[tuple[int, int], ...]]:
    """What the cluster holds, as two answers running say of the rows that moved.

    A broker may answer from an old image, with error 0. So the second answer is another broker's,
    where there is one, and who answers otherwise is named, with how many rows. Where no two agree
    in time, the answer is taken in which the fewest rows have moved.
    """
    stored = cluster.describe()
    verified = _verified(ledger)
    held = held_by(stored) if verified else {}
    moved = first = _moved(held, verified)
    if not moved or isinstance(cluster, Snapshot):
        return stored, ()
    until = monotonic() + PATIENCE
    answers: dict[int, tuple[Moved, Held]] = {cluster.last_asked: (moved, held)}
    others = [one.id for one in cluster.asked if one.id != cluster.last_asked]
    agreed = False
    for broker in cycle([*others, cluster.last_asked]):
        if agreed or monotonic() > until:
            break
        try:
            held = cluster.held(broker, LIMIT)
        except ClusterTrouble:
            continue
        now = _moved(held, verified)
        agreed, moved = now == moved, now
        answers[broker] = now, held
        sleep(0 if agreed else 0.02)
    if not agreed:
        moved, held = min(answers.values(), key=lambda one: len(one[0]))
    differs = {broker: len(one ^ moved) for broker, (one, _) in answers.items()}
    disagree = tuple((broker, rows) for broker, rows in sorted(differs.items()) if rows)
    return stored if moved == first else _rows(held), disagree


def _rows(held: Held) -> Stored:
    return tuple(StoredQuota(Entity.parse(text), key, value) for (text, key), value in held.items())


def _verified(ledger: pa.Table) -> dict[tuple[str, str], float | None]:
    columns = (ledger[name].to_pylist() for name in ("entity", "key", "value", "state"))
    return {
        (entity, key): value
        for entity, key, value, state in zip(*columns, strict=True)
        if state == VERIFIED
    }


def _moved(held: Held, verified: Mapping[tuple[str, str], float | None]) -> Moved:
    others = verified.items() - held.items()  # NaN, which equals nothing, is among them
    return frozenset(
        (*row, str(held.get(row))) for row, value in others if not same(held.get(row), value)
    )
