"""Assets of each cluster, whose events start the DAGs that follow a change or drift."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias, get_current_context

from quota_ops.model.quotas.difference import EARLIER_KINDS, Kind
from quota_ops.store.places.run_store import safe_name

if TYPE_CHECKING:
    from quota_ops.model.runs.report import Report
    from quota_ops.store.run.folder import RunFolder

Event = Mapping[str, Any]
"""The extra of an event."""
APPLIED = AssetAlias("quota_ops_applied")
"""What verify emits for any cluster. An outlet that is an alias has no event by default."""
DRIFTED = AssetAlias("quota_ops_drifted")
"""What the drift DAG emits for any cluster."""


def applied_asset(cluster: str) -> Asset:
    """Return the asset that a run updates when it has changed quotas and verified them.

    The task verify emits an asset event, unless the run changed nothing or verify failed. The
    extra of the event has `cluster`, `run` (its name in the run store), `commit`, and the `counts`
    of report.json.
    """
    return _make_asset(cluster, "applied")


def drifted_asset(cluster: str) -> Asset:
    """Return the asset that the drift DAG updates when it finds drift on a cluster.

    Each run of that DAG that finds drift emits an event, with an extra as in `applied_asset`.
    """
    return _make_asset(cluster, "drifted")


def emit_applied(folder: "RunFolder") -> None:
    """Emit the event of `applied_asset` if the run changed anything."""
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.run.files import APPLIED as OUTCOMES

    if any(outcome.was_written for outcome in folder.outcomes(OUTCOMES)):
        event = make_event(read_report(folder))
        _emit(APPLIED, applied_asset(event["cluster"]), event)


def emit_drifted(event: Event) -> None:
    """Emit the event of `drifted_asset`."""
    _emit(DRIFTED, drifted_asset(event["cluster"]), event)


def has_drift(report: "Report") -> bool:
    """Return whether quotas were changed outside Git, or unmanaged ones override those of Git.

    So does a quota that has the value of an earlier run again.
    """
    found = {*EARLIER_KINDS, Kind.OVERRIDING}
    return report.plan is not None and any(
        row.is_drift or row.kind in found for row in report.plan.differences
    )


def _make_asset(cluster: str, event: str) -> Asset:
    name = safe_name(cluster)
    return Asset(name=f"quota_ops_{name}_{event}", uri=f"x-quota-ops://{name}/{event}")


def make_event(report: "Report") -> Event:
    """Return the extra of an event."""
    from quota_ops.report.records.json_report import count_rows

    return {
        "cluster": report.cluster,
        "run": report.run,
        "commit": report.commit,
        "counts": count_rows(report),
    }


def _emit(alias: AssetAlias, asset: Asset, event: Event) -> None:
    get_current_context()["outlet_events"][alias].add(asset, dict(event))
