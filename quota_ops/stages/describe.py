"""describe: everything the cluster holds, beside what the ledger knows of it at that moment."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quota_ops import ledger
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.borders import Borders
from quota_ops.model.entity import Entity
from quota_ops.model.metadata import Metadata
from quota_ops.model.policy import Policy
from quota_ops.model.quota import unalterable
from quota_ops.model.rows import ActualRow, StoredQuota
from quota_ops.model.tables import ACTUAL, CLUSTERS, HOLDS, LEDGER
from quota_ops.run_folder import DESCRIBED, FACTS, METADATA, RunFolder
from quota_ops.snapshot import Snapshot
from quota_ops.stages.anew import set_aside
from quota_ops.stages.confirming import confirmed
from quota_ops.stages.holding import held_entities, holds_now


def run(
    folder: RunFolder, cluster: Cluster | Snapshot, ledger_folder: Path, holds_folder: Path
) -> int:
    """Leave actual, ledger, holds, clusters and facts; how many rows the cluster holds.

    What seems to have moved behind Git's back is described twice.

    The ledger is read first: a row that a run of ours writes in between then looks like
    somebody else's, never the other way round.
    """
    set_aside(folder, "describe")
    with folder.stage("describe"):
        policy = folder.policy()
        known, lasting = ledger.last(ledger_folder), holds_now(holds_folder)
        facts, metadata = cluster.facts_aside(), cluster.metadata_aside()
        stored, disagree = confirmed(cluster, known.table)
        folder.write_table(ACTUAL, list(_rows(policy, stored)))
        folder.write_arrow(LEDGER, known.table)
        folder.write_table(HOLDS, list(held_entities(folder, policy.cluster_id, lasting)))
        verified = ledger.VERIFIED in known.table["state"].to_pylist()
        was_verified = verified and ledger.applied(known.table)[0] is not None
        clears = policy.clear_unmanaged and was_verified
        folder.write_table(CLUSTERS, [(policy.cluster_id, policy.drift.value, clears)])
        folder.write_json(
            DESCRIBED,
            {
                "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                "snapshot": cluster.place if isinstance(cluster, Snapshot) else None,
                "brokers": [f"{one.id} {one.host}:{one.port}" for one in cluster.brokers],
                "ledger": known.name,
                "holds": [one.as_json() for one in lasting],
            },
        )
        if (told := facts()) is not None:
            folder.write_json(FACTS, told.as_json())
        if (image := metadata()) is not None or disagree:
            image = replace(image or Metadata(), disagree=disagree)
            folder.write_json(METADATA, image.as_json())
        return len(stored)


def _rows(policy: Policy, stored: Iterable[StoredQuota]) -> Iterator[ActualRow]:
    scope, protect = Borders(policy.scope), Borders(policy.protect)
    last: Entity | None = None
    types: tuple[str, ...] = ()
    text, in_scope, protected = "", False, False
    for entity, key, value in stored:
        if entity is not last:
            last, text, types = entity, entity.text, entity.types
            in_scope = scope.meets(entity) is not None
            protected = protect.meets(entity) is not None
        hands_off = "protected" if protected else unalterable(types, key)
        yield ActualRow(policy.cluster_id, text, key, value, in_scope, hands_off)
