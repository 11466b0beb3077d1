"""The rows of a plan that other brokers share now than when it was made."""

from collections.abc import Callable, Mapping

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.plans.placement import Placement, UnknownBrokersError, list_topics
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.text import counted
from quota_ops.stages.describe.absent_brokers import read_known_brokers
from quota_ops.stages.describe.rates import list_rates, read_placement
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.run.folder import RunFolder


def watch_brokers(
    folder: RunFolder, cluster: Cluster, plan: Plan, records: ClusterStore
) -> Callable[[], Mapping[Key, str]]:
    """Return a function that returns the written rows whose divisor has changed, and why.

    It queries the cluster only if the plan writes shares of limits of the whole cluster.
    """
    rates = list_rates(folder, (row.id for row in plan.writes if row.target is not None))
    topics = list_topics(row.topics for row in rates)

    def find_moved() -> Mapping[Key, str]:
        if not rates:
            return {}
        known = read_known_brokers(records)
        placement = read_placement(cluster, plan.policy, known, topics)
        found = ((row.id, _explain_move(row, placement)) for row in rates)
        return {key: why for key, why in found if why}

    return find_moved


def _explain_move(row: DesiredRow, placement: Placement) -> str:
    """Return why a share is no longer that of the plan; an empty text if it still is."""
    try:
        now = len(placement.find_sharing(row.topics))
    except UnknownBrokersError as error:
        return str(error)
    if now == row.brokers:
        return ""
    return f"{counted(now, 'broker')} share the limit now, and {row.brokers} did in the plan"
