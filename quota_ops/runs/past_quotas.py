"""The quotas that a cluster stored in the past, as far as runs have seen them.

Each run reads all quotas of a cluster, and the history has what a later look found after its
writes. Between two looks that saw the same value, that value was in force; between two that saw
different ones, nobody knows since when.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa

from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.tables import ACTUAL, DESIRED
from quota_ops.sql.history import read_stored
from quota_ops.stages.use.past_limits import Look, PastQuotas
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import DESCRIBED, FACTS
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import NamedCluster, latest_first

_COLUMNS = ["entity", "key", "value"]
_OVERLAP = timedelta(days=1)
"""How far before the first look the history is read: its days are those of ends in UTC."""


def read_past_quotas(store: RunStore, cluster: str, cluster_id: str, start: datetime) -> PastQuotas:
    """Return what runs saw of a cluster since the last look before `start`.

    Raises InvalidInput if the run store cannot be listed.
    """
    looks: list[Look] = []
    troubles: list[str] = []
    owners: dict[tuple[Entity, str], str | None] = {}
    facts: ClusterFacts | None = None
    later: _Found | None = None
    parse = cache(Entity.parse)  # each entity has several keys, in several runs
    try:
        runs = list(latest_first(store, store.runs(cluster)))
    except InvalidInput:  # the cluster has no run yet
        runs = []
    for place in runs:
        run = RunFolder(place)
        try:
            found = _look_at(run, cluster_id, later, parse)
        except InvalidInput as error:
            troubles.append(error.message)
            continue
        if found is None:
            continue
        if not looks:
            owners, facts = _read_owners(run, parse), run.find(FACTS)
        later = found
        looks.append(found.look)
        if found.look.at <= start:
            break
    looks.reverse()
    first = min([start, *(look.at for look in looks[:1])])  # a run may have written since
    since = f"{first - _OVERLAP:%Y-%m-%d}"
    writes, unread = read_stored(store, NamedCluster((cluster,), cluster_id), since)
    for ended, of_end in groupby(writes, itemgetter(0)):
        _add_write(looks, datetime.fromisoformat(ended), of_end, parse)
    return PastQuotas(looks, owners, facts, (*troubles, *unread))


class _Found(NamedTuple):
    """What a run read, and the rows that it is made of."""

    look: Look
    rows: pa.Table


def _look_at(
    run: RunFolder, cluster_id: str, later: _Found | None, parse: Callable[[str], Entity]
) -> _Found | None:
    """Return what a run read of a cluster; None if it read none, or another one.

    The same quotas as in the run that was read before are the same object: hourly runs of a week
    would take a gigabyte and minutes.
    """
    described = run.find(DESCRIBED) if run.has(ACTUAL.file) else None
    if described is None or described.snapshot or described.cluster_id != cluster_id:
        return None
    at, rows = datetime.fromisoformat(described.at), run.read_table(ACTUAL).select(_COLUMNS)
    if later is not None and rows.equals(later.rows):
        return _Found(Look(at, later.look.stored), rows)
    stored: dict[str, dict[Entity, float]] = {}
    for entity, key, value in to_rows(rows):
        stored.setdefault(key, {})[parse(entity)] = value
    return _Found(Look(at, stored), rows)


def _read_owners(
    run: RunFolder, parse: Callable[[str], Entity]
) -> dict[tuple[Entity, str], str | None]:
    """Return the owners of the quotas that Git declared in a run."""
    with suppress(InvalidInput):
        if run.has(DESIRED.file):
            rows = to_rows(run.read_table(DESIRED), "entity", "key", "owner")
            return {(parse(entity), key): owner for entity, key, owner in rows}
    return {}


def _add_write(
    looks: list[Look],
    at: datetime,
    values: Iterable[tuple[str, str, str, float | None]],
    parse: Callable[[str], Entity],
) -> None:
    """Add the look at the end of a run that wrote, if there is one before it."""
    before = [number for number, look in enumerate(looks) if look.at <= at]
    if not before:
        return
    stored = {key: {**limits} for key, limits in looks[before[-1]].stored.items()}
    for _, entity, key, value in values:
        limits = stored.setdefault(key, {})
        if value is None:
            limits.pop(parse(entity), None)
        else:
            limits[parse(entity)] = value
    looks.insert(before[-1] + 1, Look(at, stored))
