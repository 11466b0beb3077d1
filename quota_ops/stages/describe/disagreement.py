"""Brokers that disagree: a second response tells a change on the cluster from old metadata."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import cycle
from time import monotonic, sleep

import pyarrow as pa

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import ClusterTrouble, Refused
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, Stored
from quota_ops.model.text import name_first
from quota_ops.store.ledger.ledger import Ledger, damaged
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.places.snapshot import Snapshot

PATIENCE = 5.0
"""Seconds within which two responses must agree."""
LIMIT = 2.0
"""The timeout of one broker's response, in seconds."""

Changed = frozenset[tuple[str, str, str]]
"""Rows that differ from the verified value: entity, key and the currently stored value."""


def confirm_stored(
    cluster: Cluster | Snapshot, described: Stored, known: Ledger
) -> tuple[Stored, tuple[tuple[int, int], ...]]:
    """Return the stored values, and each broker that disagrees with its number of differing rows.

    A broker may respond from old metadata, without an error. If managed rows seem to have changed
    in the first response, `described`, brokers are queried in turn until two consecutive responses
    agree on those rows. If no two agree in time, the response with the fewest changed rows is used.

    Raises InvalidInput when the ledger has a row with an invalid Kafka entity.
    """
    changed = first = _find_changed(described, known.table)
    _check_entities(known, (text for text, key, _ in changed if (text, key) not in described))
    if not changed or isinstance(cluster, Snapshot):
        return described, ()
    responses: dict[int, tuple[Changed, Stored]] = {cluster.last_responder: (changed, described)}
    for broker, stored in _query_in_turn(cluster):
        before, changed = changed, _find_changed(stored, known.table)
        responses[broker] = changed, stored
        if changed == before:
            break
    else:
        changed, stored = min(responses.values(), key=lambda response: len(response[0]))
    differs = {broker: len(found ^ changed) for broker, (found, _) in responses.items()}
    disagree = tuple((broker, rows) for broker, rows in sorted(differs.items()) if rows)
    return described if changed == first else stored, disagree


def _check_entities(known: Ledger, texts: Iterable[str]) -> None:
    for text in texts:
        try:
            Entity.parse(text)
        except ValueError:
            raise damaged(f"{known.file} has rows of the invalid entity {text!r}") from None


def _query_in_turn(cluster: Cluster) -> Iterator[tuple[int, Stored]]:
    """Yield each broker's id and stored values until the timeout; query the last responder last."""
    until = monotonic() + PATIENCE
    others = [
        endpoint.id for endpoint in cluster.endpoints if endpoint.id != cluster.last_responder
    ]
    for broker in cycle([*others, cluster.last_responder]):
        with suppress(ClusterTrouble):
            yield broker, cluster.describe_values(broker, LIMIT)
        if monotonic() > until:
            return
        sleep(0.02)


def refuse_disagreement(
    cluster: Cluster, described: Stored, keys: Collection[Key] | None = None
) -> None:
    """Raise Refused if a second response has other values: one of them may be of old metadata.

    It is of another broker if there is one. Only `keys` count, or all rows without them. Raises
    ClusterTrouble if no broker responds again.
    """
    first = cluster.last_responder
    response = next(_query_in_turn(cluster), None)
    if response is None:
        raise ClusterTrouble("no broker responded a second time", "Nothing was written. Try again.")
    second, stored = response
    rows = described.keys() | stored.keys() if keys is None else keys
    differing = [row for row in sorted(rows) if not same(described.get(row), stored.get(row))]
    if differing:
        brokers = " and ".join(f"broker {broker}" for broker in sorted({first, second}))
        raise Refused(
            f"{brokers} responded with different values of {name_first(map(' '.join, differing))}",
            "Nothing was written. If nobody is changing quotas now, a broker has old metadata: run "
            "the command again when it follows the controllers.",
        )


def _find_changed(stored: Stored, ledger: pa.Table) -> Changed:
    return frozenset(
        (entity, key, str(now))
        for entity, key, value, state in to_rows(ledger, "entity", "key", "value", "state")
        if state == VERIFIED and value is not None
        if not same(now := stored.get(Key(entity, key)), value)
    )
