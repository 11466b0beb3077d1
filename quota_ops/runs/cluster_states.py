"""The state of clusters, from their newest reports and the history."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from quota_ops.model.history.history import HistoryRow, Mode
from quota_ops.report.records.metrics import ClusterState, read_state
from quota_ops.sql.history import read_history
from quota_ops.store.history.history import Day, list_days, read_day
from quota_ops.store.places.run_store import RunStore, safe_name
from quota_ops.store.run.names import read_number
from quota_ops.store.run.newest_reports import read_newest_reports
from quota_ops.store.run.state import list_cut_off

_LOOK_BACK = timedelta(days=30)


def read_cluster_states(store: RunStore, clusters: Sequence[str]) -> list[ClusterState]:
    """Return the state of each cluster by its newest report, in this order.

    A cluster without a readable report has a state without counts. Raises InvalidInput if the
    store cannot be listed.
    """
    reports = read_newest_reports(store, clusters)
    states = {name: read_state(name, reports[name]) for name in clusters}
    for name in _find_cut_off(store, reports):
        states[name] = ClusterState(name, states[name].reported)
    states = {name: _add_drift(store, state) for name, state in states.items()}
    _add_earlier_runs(store, states)
    return list(states.values())


def _find_cut_off(store: RunStore, reports: Mapping[str, Any]) -> Iterator[str]:
    """Yield the clusters on which a run died while it wrote, and no run has compared since."""
    names = {safe_name(cluster): cluster for cluster in reports}
    for run in list_cut_off(store.root):
        name = names.get(run.place.parent.name, "")
        if report := reports.get(name):
            compared = store.runs_of(name) / safe_name(report["run"])
            if read_number(run.place) >= read_number(compared):
                yield name


def _add_drift(store: RunStore, state: ClusterState) -> ClusterState:
    """Add when a run first found the oldest drift."""
    if not any(state.drifted.values()):
        return state
    quotas = read_history(store, state.cluster).quotas
    since = min((quota.drifted_since for quota in quotas if quota.drifted_since), default=None)
    return state._replace(drifted_since=since or state.reported)


def _add_earlier_runs(store: RunStore, states: dict[str, ClusterState]) -> None:
    """Add the last run that was not stopped, and the last one that applied Git or tried to."""
    missing = {name for name, state in states.items() if None in (state.applied, state.succeeded)}
    for day in reversed(list_days(store, _first_day()) if missing else ()):
        if not missing:
            return
        for row in _list_ends(day.of_clusters(missing)):
            if row.cluster not in missing:
                continue
            state = states[row.cluster] = _add_run(states[row.cluster], row)
            if state.applied and state.succeeded:
                missing.remove(row.cluster)


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


def _first_day() -> str:
    return f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}"
