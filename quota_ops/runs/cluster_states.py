"""The state of clusters, from their newest reports and the history."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from quota_ops.model.history import Mode
from quota_ops.model.report import StageStatus
from quota_ops.report.metrics import ClusterState, read_state
from quota_ops.sql.history import read_events, read_history
from quota_ops.store.newest_reports import read_newest_reports
from quota_ops.store.run_store import RunStore

_LOOK_BACK = timedelta(days=30)


def read_cluster_states(store: RunStore, clusters: Sequence[str]) -> list[ClusterState]:
    """Return the state of each cluster by its newest report, in this order.

    A cluster without a readable report has a state without counts. Raises InvalidInput if the
    store cannot be listed.
    """
    reports = read_newest_reports(store, clusters)
    return [_add_history(store, read_state(name, reports[name])) for name in clusters]


def _add_history(store: RunStore, state: ClusterState) -> ClusterState:
    """Add what the report does not have; only clusters in trouble need the history."""
    if any(state.drifted.values()):
        quotas = read_history(store, state.cluster).quotas
        since = min((one.drifted_since for one in quotas if one.drifted_since), default=None)
        state = state._replace(drifted_since=since or state.reported)
    if state.succeeded is None:
        state = state._replace(succeeded=_find_success(store, state.cluster))
    return state


def _find_success(store: RunStore, cluster: str) -> str | None:
    """Return when the newest run ended that compared the cluster and did not fail."""
    since = f"{datetime.now(UTC) - _LOOK_BACK:%Y-%m-%d}"
    return max(
        (
            row.ended
            for row in read_events(store, cluster, since).rows
            if row.declared is not None
            and row.mode != Mode.ROLLBACK
            and row.stopped in {None, StageStatus.REFUSED}
        ),
        default=None,
    )
