"""The state of clusters, from their newest reports and the history."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import HistoryRow, Mode
from quota_ops.report.records.metrics import ClusterState, read_state
from quota_ops.sql.history import read_history
from quota_ops.store.history.history import Day, list_days, read_day
from quota_ops.store.places.run_store import RunStore, safe_name
from quota_ops.store.run.names import NamedCluster, find_cluster, read_number
from quota_ops.store.run.newest_reports import read_newest_reports
from quota_ops.store.run.state import list_cut_off

_log = logging.getLogger(__name__)
_LOOK_BACK = timedelta(days=30)


def read_cluster_states(store: RunStore, clusters: Sequence[str]) -> list[ClusterState]:
    """Return the state of each cluster, by its name or id, by its newest report, in this order.

    A cluster without a readable report, and a name of several clusters, which is logged, has a
    state without counts. Raises InvalidInput if the store cannot be listed.
    """
    found = dict(_find_clusters(store, clusters))
    named = [name for name, cluster in found.items() if cluster.cluster_id is None]
    reports = read_newest_reports(store, named)
    for text in found.keys() - reports:
        names, cluster_id = found[text]
        newest = read_newest_reports(store, names[:1], cluster_id=cluster_id)
        reports[text] = newest[names[0]]
    states = {name: read_state(name, reports.get(name)) for name in clusters}
    for name in _find_cut_off(store, found, reports):
        states[name] = ClusterState(name, states[name].reported)
    for name, cluster in found.items():
        states[name] = _add_drift(store, states[name], cluster)
    _add_earlier_runs(store, states, found)
    return list(states.values())


def _find_clusters(store: RunStore, clusters: Iterable[str]) -> Iterator[tuple[str, NamedCluster]]:
    for name in clusters:
        try:
            yield name, find_cluster(store, name)
        except InvalidInput as error:
            _log.warning("%s", error)


def _find_cut_off(
    store: RunStore, clusters: Mapping[str, NamedCluster], reports: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the clusters on which a run died while it wrote, and no run has compared since."""
    for run in list_cut_off(store.root):
        for name, cluster in clusters.items():
            if cluster.has_run(run.place) and (report := reports[name]):
                compared = store.runs_of(cluster.names[0]) / safe_name(report["run"])
                if read_number(run.place) >= read_number(compared):
                    yield name


def _add_drift(store: RunStore, state: ClusterState, cluster: NamedCluster) -> ClusterState:
    """Add when a run first found the oldest drift."""
    if not any(state.drifted.values()):
        return state
    quotas = read_history(store, cluster).quotas
    since = min((quota.drifted_since for quota in quotas if quota.drifted_since), default=None)
    return state._replace(drifted_since=since or state.reported)


def _add_earlier_runs(
    store: RunStore, states: dict[str, ClusterState], clusters: Mapping[str, NamedCluster]
) -> None:
    """Add the last run that was not stopped, and the last one that applied Git or tried to."""
    missing = {
        name: cluster
        for name, cluster in clusters.items()
        if None in (states[name].applied, states[name].succeeded)
    }
    first = f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}"
    for day in reversed(list_days(store, first) if missing else ()):
        if not missing:
            return
        names = {name for cluster in missing.values() for name in cluster.names}
        for row in _list_ends(day.of_clusters(names)):
            for name, cluster in [*missing.items()]:
                if cluster.has(row.cluster, row.cluster_id):
                    state = states[name] = _add_run(states[name], row)
                    if state.applied and state.succeeded:
                        del missing[name]


def _add_run(state: ClusterState, row: HistoryRow) -> ClusterState:
    """Add what an earlier run has to the state of its cluster, if no later run had it."""
    has_compared = row.mode in {Mode.LOOK, Mode.APPLY} and row.declared is not None
    if state.refused is None and (row.mode == Mode.APPLY or row.stopped_at == "validate"):
        state = state._replace(refused=row.refused or 0)
    if has_compared and row.stopped is None:
        state = state._replace(succeeded=state.succeeded or row.ended)
        if row.mode == Mode.APPLY:
            state = state._replace(applied=state.applied or row.ended)
    return state


def _list_ends(day: Day) -> list[HistoryRow]:
    """Return the ends of a day's runs, the newest first."""
    rows = [
        HistoryRow(**values)
        for table in read_day(day).tables
        for values in table.filter(table["entity"].is_null()).to_pylist()
    ]
    rows.sort(key=lambda row: (row.ended, row.sequence or 0, row.revision))
    return [*{(row.cluster, row.run, row.ended): row for row in rows}.values()][::-1]
