"""A row of ours that seems to have moved is asked for a second time before anyone is told."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import cycle
from time import monotonic, sleep

import pyarrow as pa

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.outcomes import Stored
from quota_ops.model.entity import Entity
from quota_ops.model.errors import ClusterTrouble
from quota_ops.model.ledger_edits import VERIFIED
from quota_ops.model.quota import same
from quota_ops.model.rows import Key
from quota_ops.store.ledger import LedgerFile, damaged
from quota_ops.store.parquet import to_values
from quota_ops.store.snapshot import Snapshot

PATIENCE = 5.0
"""Seconds in which two answers must come to agree."""
LIMIT = 2.0
"""Seconds that one broker is given to answer."""

Moved = frozenset[tuple[str, str, str]]
"""Rows that are not as they were verified: entity, key and what is stored now."""


def confirm_stored(
    cluster: Cluster | Snapshot, described: Stored, known: LedgerFile
) -> tuple[Stored, tuple[tuple[int, int], ...]]:
    """Return what the cluster stores, once two responses in a row agree on the rows that moved.

    That is `described`, the first response, unless later ones differ from it.

    A broker may answer from an old image, with error 0. So the second answer is another broker's,
    where there is one, and who answers otherwise is named, with how many rows. Where no two agree
    in time, the answer is taken in which the fewest rows have moved.

    Raises InvalidInput where the ledger knows what is no entity: nobody ever stored it.
    """
    verified = _verified(known.table)
    moved = first = _moved(described, verified)
    _check_entities(known, (text for text, key, _ in moved if (text, key) not in described))
    if not moved or isinstance(cluster, Snapshot):
        return described, ()
    answers: dict[int, tuple[Moved, Stored]] = {cluster.last_responder: (moved, described)}
    for broker, stored in _asked_in_turn(cluster):
        before, moved = moved, _moved(stored, verified)
        answers[broker] = moved, stored
        if moved == before:
            break
    else:
        moved, stored = min(answers.values(), key=lambda one: len(one[0]))
    differs = {broker: len(one ^ moved) for broker, (one, _) in answers.items()}
    disagree = tuple((broker, rows) for broker, rows in sorted(differs.items()) if rows)
    return described if moved == first else stored, disagree


def _check_entities(known: LedgerFile, texts: Iterable[str]) -> None:
    for text in texts:
        try:
            Entity.parse(text)
        except ValueError:
            raise damaged(f"{known.name} has rows of {text!r}, which is not an entity") from None


def _asked_in_turn(cluster: Cluster) -> Iterator[tuple[int, Stored]]:
    """What each broker that answers holds, who answered last at the end, until time is over."""
    until = monotonic() + PATIENCE
    others = [one.id for one in cluster.endpoints if one.id != cluster.last_responder]
    for broker in cycle([*others, cluster.last_responder]):
        with suppress(ClusterTrouble):
            yield broker, cluster.describe_values(broker, LIMIT)
        if monotonic() > until:
            return
        sleep(0.02)


def _verified(ledger: pa.Table) -> dict[Key, float | None]:
    columns = (to_values(ledger[name]) for name in ("entity", "key", "value", "state"))
    return {
        Key(entity, key): value
        for entity, key, value, state in zip(*columns, strict=True)
        if state == VERIFIED
    }


def _moved(stored: Stored, verified: Mapping[Key, float | None]) -> Moved:
    return frozenset(
        (*row, str(stored.get(row)))
        for row, value in verified.items()
        if not same(stored.get(row), value)
    )
