"""The state of clusters, from their newest reports and the history."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from quota_ops.model.history import HistoryRow, Mode
from quota_ops.model.report import StageStatus
from quota_ops.report.metrics import ClusterState, read_state
from quota_ops.sql.history import read_events, read_history
from quota_ops.store.history import Day, list_days, read_day
from quota_ops.store.newest_reports import read_newest_reports
from quota_ops.store.run_store import RunStore

_LOOK_BACK = timedelta(days=30)


def read_cluster_states(store: RunStore, clusters: Sequence[str]) -> list[ClusterState]:
    """Return the state of each cluster by its newest report, in this order.

    A cluster without a readable report has a state without counts. Raises InvalidInput if the
    store cannot be listed.
    """
    reports = read_newest_reports(store, clusters)
    states = {name: _add_history(store, read_state(name, reports[name])) for name in clusters}
    _add_applies(store, states)
    return list(states.values())


def _add_history(store: RunStore, state: ClusterState) -> ClusterState:
    """Add what the report does not have; only clusters in trouble need the history."""
    if any(state.drifted.values()):
        quotas = read_history(store, state.cluster).quotas
        since = min((one.drifted_since for one in quotas if one.drifted_since), default=None)
        state = state._replace(drifted_since=since or state.reported)
    if state.succeeded is None:
        state = state._replace(succeeded=_find_success(store, state.cluster))
    return state


def _add_applies(store: RunStore, states: dict[str, ClusterState]) -> None:
    """Add what only an earlier run has that applied Git or tried to: drift runs do not."""
    missing = {name for name, one in states.items() if one.applied is None}
    for day in reversed(list_days(store) if missing else ()):
        if not missing or day.date < _first_day():
            return
        for row in _list_ends(day.of_clusters(missing)):
            if row.cluster not in missing:
                continue
            state = states[row.cluster]
            if state.refused is None and (row.mode == Mode.APPLY or row.stopped_at == "validate"):
                states[row.cluster] = state = state._replace(refused=row.refused or 0)
            if row.mode == Mode.APPLY and row.stopped is None:
                states[row.cluster] = state._replace(applied=row.ended)
                missing.remove(row.cluster)


def _list_ends(day: Day) -> list[HistoryRow]:
    """Return the ends of a day's runs, the newest first."""
    rows = [
        HistoryRow(**values)
        for table in read_day(day).tables
        for values in table.filter(table["entity"].is_null()).to_pylist()
    ]
    rows.sort(key=lambda one: (one.ended, one.sequence or 0, one.revision))
    return [*{(one.cluster, one.run, one.ended): one for one in rows}.values()][::-1]


def _first_day() -> str:
    return f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}"


def _find_success(store: RunStore, cluster: str) -> str | None:
    """Return when the newest run ended that compared the cluster and did not fail."""
    return max(
        (
            row.ended
            for row in read_events(store, cluster, _first_day()).rows
            if row.declared is not None
            and row.mode != Mode.ROLLBACK
            and row.stopped in {None, StageStatus.REFUSED}
        ),
        default=None,
    )
