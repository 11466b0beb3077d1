"""A lost ledger never lets a run clear more than before."""

from collections.abc import Iterable
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from quota_ops.model.quotas.difference import Action, Difference
from quota_ops.sql.embedded import EmbeddedEngine
from tests.engines.test_properties import Cluster, by_engine, clusters

Keys = set[tuple[str, str]]


def cleared(differences: Iterable[Difference], cluster: str) -> Keys:
    """Return the rows that a plan for a cluster would clear."""
    return {
        (row.entity, row.key)
        for row in differences
        if row.cluster == cluster and row.action is Action.CLEAR
    }


def without_ledger(cluster: Cluster) -> Cluster:
    """Return the cluster without a ledger: describe then lets nothing unmanaged be cleared."""
    rows = {key: (want, have, None, ()) for key, (want, have, *_) in cluster.rows.items()}
    return cluster._replace(clear_unmanaged=False, rows=rows)


def adopted(cluster: Cluster) -> Cluster:
    """Return the cluster after `adopt --all`."""
    known = ("verified", None, None, None, "run", "at")
    rows = {
        key: (want, have, (have[0], *known) if want and have else None, ())
        for key, (want, have, *_) in cluster.rows.items()
    }
    return cluster._replace(rows=rows)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cluster=clusters)
def test_a_lost_ledger_clears_nothing_more(
    cluster: Cluster, embedded: EmbeddedEngine, tmp_path: Path
) -> None:
    """Without the ledger nothing is cleared.

    After adopting, nothing that was not cleared before.
    """
    lost = without_ledger(cluster)
    fleet = {"before": cluster, "lost": lost, "rebuilt": adopted(lost)}
    differences, _ = by_engine(embedded, tmp_path, fleet)

    assert cleared(differences, "lost") == set()
    assert cleared(differences, "rebuilt") <= cleared(differences, "before")
