"""Runs that saw what a cluster stored in the past."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import ActualRow, DesiredRow
from quota_ops.model.quotas.tables import ACTUAL, DESIRED
from quota_ops.model.runs.run import About, Described
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import ABOUT, DESCRIBED, FACTS
from quota_ops.store.run.folder import RunFolder
from tests.usage.scenario import CLUSTER_ID
from tests.writing import State


def leave_look(
    store: RunStore,
    at: datetime,
    state: State,
    *,
    owners: Mapping[str, str] = {},
    brokers: int = 2,
    hosts: Sequence[str] = (),
    callback_class: str | None = None,
    cluster: str = "orders",
    cluster_id: str = CLUSTER_ID,
) -> None:
    """Leave a run that read the quotas of a cluster at a time."""
    name = f"{at:%Y-%m-%dT%H-%M-%SZ}-0001"
    run = RunFolder(store.runs_of(cluster) / name)
    run.write(ABOUT, About(name, cluster, iso_utc(at), cluster_id=cluster_id))
    run.write(DESCRIBED, Described(iso_utc(at), cluster_id))
    rows = [
        (entity, key, float(value))
        for entity, limits in state.items()
        for key, value in limits.items()
        if value is not None
    ]
    run.write_table(
        ACTUAL, [ActualRow(cluster_id, *row, in_scope=True, hands_off=None) for row in rows]
    )
    facts = [
        BrokerFacts(number, f"{host}:9092", callback_class=callback_class)
        for number, host in enumerate(hosts or ["kafka"] * brokers)
    ]
    run.write(FACTS, ClusterFacts(tuple(facts), "User:admin"))
    declared = [row for row in rows if row[0] in owners]
    run.write_table(
        DESIRED,
        [
            DesiredRow(cluster_id, entity, key, value, owners[entity], None, "file.yaml", 1)
            for entity, key, value in declared
        ],
    )


def leave_write(store: RunStore, at: datetime, entity: str, key: str, found: float | None) -> None:
    """Leave the end of a run that wrote a quota, and found a value afterwards."""
    values: dict[str, object] = dict.fromkeys(HistoryRow._fields)
    run = f"run {iso_utc(at)}"
    values |= {"cluster": "orders", "cluster_id": CLUSTER_ID, "run": run, "revision": 1}
    values |= {"started": iso_utc(at), "ended": iso_utc(at), "mode": "apply", "status": "In sync"}
    quota = {"entity": Entity.parse(entity).text, "key": key, "found": found, "found_by": run}
    rows = [HistoryRow(**values), HistoryRow(**values | quota)]  # type: ignore[arg-type]
    history.append(store, parquet.from_rows(HISTORY, rows))
