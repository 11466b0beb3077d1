"""The status of clusters as metrics for Prometheus."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from quota_ops.model.quotas.difference import DRIFT_KINDS
from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.quota import find_applied
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.stages import STOPPED, StageStatus
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.precedence.resolution import find_level
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.summary import SyncStatus
from quota_ops.usage.labels import encode_client_id, encode_user
from quota_ops.usage.presets import RESOURCES, find_names

_PREFIX = "quota_ops_"
_COUNTS = {
    "declared": ("quotas_declared", "Quotas that Git declares."),
    "stored": ("quotas_stored", "Quotas that the cluster stores."),
    "in_sync": (
        "quotas_in_sync",
        "Quotas of Git that the cluster stores, and that only protected quotas come before.",
    ),
    "overriding": (
        "quotas_overriding",
        "Unmanaged quotas that some clients get in place of quotas of Git.",
    ),
    "pending": (
        "quotas_pending",
        "Quotas to set or clear: Git changed, the ledger lacks them, or they are unmanaged.",
    ),
    "returned": ("quotas_returned", "Quotas that have the value of an earlier run again."),
    "held": ("quotas_held", "Quotas that are not changed, because a person holds them."),
    "not_judged": (
        "quotas_not_judged",
        "Managed quotas that are not compared or changed, because a file is invalid.",
    ),
    "unmanaged": (
        "quotas_unmanaged",
        "Quotas that quota-ops does not manage, without overriding ones.",
    ),
    "unsettled": ("quotas_unconfirmed", "Quotas whose value is not confirmed."),
}
"""The counts of a cluster, each with its metric and what it counts."""
_APPLYING = {"validate", "apply"}
"""The stages that only a run that applies Git, or tries to, begins."""


class ClusterState(NamedTuple):
    """The newest report of a cluster in numbers; times are ISO 8601, UTC."""

    cluster: str
    reported: str | None = None
    """When the newest report was written."""
    succeeded: str | None = None
    """The same of the newest run that compared the cluster and that nothing stopped."""
    counts: Mapping[str, int] | None = None
    """None if the newest run could not compare the cluster, or died while it wrote."""
    drifted: Mapping[str, int] = {}
    """How many quotas were changed outside Git, by kind."""
    drifted_since: str | None = None
    """When a run first found the oldest of these drifts."""
    refused: int | None = None
    """How many changes the broker rejected in the newest run that tried to apply Git."""
    applied: str | None = None
    """When the newest run ended that applied Git and that nothing stopped."""
    invalid: int | None = None
    """How many quotas files with problems the newest run left out."""


def read_state(cluster: str, report: Mapping[str, Any] | None) -> ClusterState:
    """Return a cluster's state from its report.json, except `drifted_since`; None is no report.

    `refused` and `applied` are None if the run did not try to apply Git; nor does `applied` count
    if it was stopped.
    """
    if report is None:
        return ClusterState(cluster)
    ends = {stage["status"] for stage in report["stages"]}
    began = {stage["stage"] for stage in report["stages"] if stage["status"] != StageStatus.NOT_RUN}
    plan, counts, rows = report["plan"], report["counts"], report["rows"]
    if plan is None:
        return ClusterState(cluster, report["finished"])
    kinds = Counter(row["kind"] for row in rows if row["status"] == "drifted")
    own = {"declared": plan["desired"], "stored": plan["actual"] + sum(map(_count_stored, rows))}
    is_unknown = report["answer"]["status"] == SyncStatus.UNKNOWN  # a broker was not read
    succeeded = None if ends & STOPPED or report["invalid"] or is_unknown else report["finished"]
    return ClusterState(
        cluster,
        reported=report["finished"],
        succeeded=succeeded,
        counts={name: own[name] if name in own else counts[name] or 0 for name in _COUNTS},
        drifted={kind: kinds[kind] for kind in sorted(DRIFT_KINDS)},
        refused=sum(map(_is_refused, rows)) if began & _APPLYING else None,
        applied=succeeded if "apply" in began else None,
        invalid=len(report["invalid"]),
    )


def _count_stored(row: Mapping[str, Any]) -> int:
    """Return 1 if a run stored a quota that did not exist before, and -1 if it cleared one."""
    if row["status"] not in {"changed", "found"}:
        return 0
    return ("target" in row) - ("before" in row)


def _is_refused(row: Mapping[str, Any]) -> bool:
    outcomes = (row.get(stage, {}).get("status") for stage in ("applied", "validated"))
    return Status.REFUSED in set(outcomes)


Find = Callable[[ClusterState], float | None]


class _Found(Collector):
    """Metrics with the values that they have."""

    def __init__(self, metrics: Iterable[GaugeMetricFamily]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics."""
        return self._metrics


def _list_metrics(states: Iterable[ClusterState]) -> Iterator[GaugeMetricFamily]:
    """Yield each metric with its values of all clusters."""
    # A file that has the same labels twice is rejected as a whole.
    by_name = {escape_text(state.cluster): state for state in states}
    for metric, (about, find) in _GAUGES.items():
        gauge = GaugeMetricFamily(f"{_PREFIX}{metric}", about, labels=("cluster",))
        for cluster, state in by_name.items():
            if (value := find(state)) is not None:
                gauge.add_metric((cluster,), value)
        yield gauge
    about = "Quotas that were changed outside Git, by kind of difference."
    gauge = GaugeMetricFamily(f"{_PREFIX}quotas_drifted", about, labels=("cluster", "kind"))
    for cluster, state in by_name.items():
        for kind, number in state.drifted.items():
            gauge.add_metric((cluster, kind), number)
    yield gauge


def _count(name: str, state: ClusterState) -> float | None:
    return None if state.counts is None else state.counts[name]


def _seconds(at: str | None) -> float:
    return datetime.fromisoformat(at).timestamp() if at else 0


_GAUGES: dict[str, tuple[str, Find]] = {
    "cluster_compared": (
        "Whether the newest run could compare the cluster with Git (1) or not (0).",
        lambda state: state.counts is not None,
    ),
    **{metric: (about, partial(_count, name)) for name, (metric, about) in _COUNTS.items()},
    "files_invalid": (
        "Quotas files with problems, which the newest run left out.",
        lambda state: state.invalid,
    ),
    "changes_refused": (
        "Changes that the broker rejected in the newest run that tried to apply Git.",
        lambda state: state.refused,
    ),
    "oldest_drift_timestamp_seconds": (
        "When a run first found the oldest drift that the cluster still has; absent without drift.",
        lambda state: _seconds(state.drifted_since) if state.drifted_since else None,
    ),
    "last_report_timestamp_seconds": (
        "When the newest run ended; 0 without one.",
        lambda state: _seconds(state.reported),
    ),
    "last_success_timestamp_seconds": (
        "When the newest run ended that compared and that nothing stopped; 0 without one.",
        lambda state: _seconds(state.succeeded),
    ),
    "last_apply_timestamp_seconds": (
        "When the newest run ended that applied Git and that nothing stopped; 0 without one.",
        lambda state: _seconds(state.applied),
    ),
}
"""The metrics with one value for each cluster: what each is, and how it is found."""


class LimitSample(NamedTuple):
    """A stored limit: the labels of the series that it is for, and its value."""

    labels: Mapping[str, str]
    value: float


def label_limits(
    cluster: str,
    usage: UsagePolicy | None,
    limits: Iterable[tuple[Entity, str, float]],
    owners: Mapping[tuple[Entity, str], str | None],
) -> Iterator[LimitSample]:
    """Yield the limits of a cluster with the labels that the metrics of use have.

    An unlimited quota is +Inf, so that no default is taken in its place. A name that is a default
    has no label; `level` tells such limits apart.
    """
    policy = usage or UsagePolicy("")
    names = find_names(policy)
    for entity, key, value in limits:
        level = find_level(entity)
        if level is None or key not in RESOURCES:
            continue
        parts = {kind: name for kind, name in entity.parts if name is not None}
        labels = {
            "cluster": dict(policy.match).get("cluster", cluster),
            "resource": RESOURCES[key].resource,
            "level": level.name,
            "owner": owners.get((entity, key)) or "",
        }
        if USER in parts:
            labels[names.user] = encode_user(parts[USER])
        if CLIENT_ID in parts:
            plain = parts[CLIENT_ID]
            labels[names.client_id] = encode_client_id(plain) if names.is_quoted else plain
        yield LimitSample(labels, find_applied(key, value))


def _list_limits(limits: Iterable[LimitSample]) -> Iterator[GaugeMetricFamily]:
    """Yield the stored limits, if there are any."""
    name = f"{_PREFIX}limit"
    gauge = GaugeMetricFamily(name, "Limits that the cluster stores, in the unit of their use.")
    for limit in limits:
        gauge.add_sample(name, dict(limit.labels), limit.value)
    if gauge.samples:
        yield gauge


def format_metrics(states: Iterable[ClusterState], limits: Iterable[LimitSample] = ()) -> str:
    """Return the metrics in Prometheus' text format, version 0.0.4."""
    return generate_latest(build_registry(states, limits)).decode()


def build_registry(
    states: Iterable[ClusterState], limits: Iterable[LimitSample] = ()
) -> CollectorRegistry:
    """Return the metrics for the functions of prometheus_client."""
    registry = CollectorRegistry()
    registry.register(_Found((*_list_metrics(states), *_list_limits(limits))))
    return registry
