"""describe: read every quota that the cluster stores, and the ledger at that moment."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters.cluster_facts import Metadata
from quota_ops.model.finding import InvalidFile
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.policy import Policy
from quota_ops.model.plans.scope import judge_scope
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import ClusterRow, LostLimit, Stored, StoredQuota
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, HOLDS, LEDGER
from quota_ops.model.runs.run import Described
from quota_ops.stages.describe.absent_brokers import add_absent_brokers
from quota_ops.stages.describe.disagreement import confirm_stored
from quota_ops.stages.describe.lost_limits import find_lost_limits
from quota_ops.stages.describe.rates import divide_declared
from quota_ops.stages.succession import read_applied_policy, take_number_above
from quota_ops.store.ledger import claims, ledger
from quota_ops.store.ledger.holds import held_entities, holds_now
from quota_ops.store.places.parquet import to_values
from quota_ops.store.places.place import measure_lead
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.places.snapshot import Snapshot
from quota_ops.store.run.files import CHECKED, DESCRIBED, FACTS, METADATA, ROLLBACK
from quota_ops.store.run.folder import RunFolder


def describe_cluster(
    folder: RunFolder,
    cluster: Cluster | Snapshot,
    records: ClusterStore,
    *,
    files: str = "",
    skip_invalid: bool = False,
) -> None:
    """Write the tables actual, ledger, holds and clusters, described.json, facts and metadata.

    It divides limits of the whole cluster; Problems show files below the path `files`.
    With `skip_invalid`, files with a limit that cannot be divided are left out as invalid ones are.
    A quota that seems to have changed outside Git is queried a second time. The ledger is read
    first: a row that another run writes in between then looks unmanaged, and an unmanaged row
    never looks managed. A ledger that was copied from another run store may have larger run
    numbers than this store; this run then takes a number above them.
    """
    policy, claimed = folder.policy(), claims.last_number(records)
    (known, old_ledger), holds = ledger.read_with_doubt(records), holds_now(records.holds)
    undivided = divide_declared(folder, cluster, known, files, skip_invalid=skip_invalid)
    find_facts, find_metadata = cluster.start_facts_query(), cluster.start_metadata_query()
    applied = read_applied_policy(folder, known.table)
    actual = list(judge_scope(policy, cluster.describe(), applied))
    described = {row.id: row.value for row in actual}
    stored, disagree = confirm_stored(cluster, described, known)
    if stored is not described:
        quotas = (StoredQuota(Entity.parse(row.entity), row.key, stored[row]) for row in stored)
        actual = list(judge_scope(policy, quotas, applied))
    lost = _find_lost(folder, policy, stored)
    not_applied = {row.id for row in lost}
    at = datetime.now(UTC)
    facts, metadata = find_facts(), find_metadata()
    if not isinstance(cluster, Snapshot):
        metadata, _ = add_absent_brokers(metadata, cluster, policy, known.notes.brokers)
    if disagree:
        metadata = replace(metadata or Metadata(), disagree=disagree)
    folder.leave_name()
    take_number_above(folder, known.table, claimed)
    folder.write_table(ACTUAL, [row for row in actual if row.id not in not_applied])
    folder.write_arrow(LEDGER, known.table)
    folder.write_table(HOLDS, list(held_entities(folder, policy.cluster_id, holds)))
    reads_git = folder.has(DESIRED.file) and not folder.has(ROLLBACK)
    invalid = folder.read(CHECKED).invalid if reads_git else ()  # never as if none were invalid
    folder.write_table(CLUSTERS, [make_cluster_row(policy, known.table, (*invalid, *undivided))])
    has_ends = policy.freeze or records.holds.list()
    lead = measure_lead(folder.place / HOLDS.file) if has_ends else 0.0
    folder.write(
        DESCRIBED,
        Described(
            at=iso_utc(at),
            snapshot=cluster.place if isinstance(cluster, Snapshot) else None,
            cluster_id=cluster.cluster_id,
            brokers=tuple(f"{broker.id} {broker.host}:{broker.port}" for broker in cluster.brokers),
            ledger=known.file,
            old_ledger=old_ledger,
            holds=holds,
            lost=lost,
            undivided=undivided,
            clock_lead=lead,
        ),
    )
    if facts is not None:
        folder.write(FACTS, facts)
    if metadata is not None:
        folder.write(METADATA, metadata)


def _find_lost(folder: RunFolder, policy: Policy, stored: Stored) -> tuple[LostLimit, ...]:
    """Return the limits that the cluster stores as Git declares them, and no broker applies."""
    name, cluster_id = folder.about().cluster, policy.cluster_id
    lost = find_lost_limits(folder.store, name, cluster_id, stored)
    declared = folder.read_values(DESIRED) if lost and folder.has(DESIRED.file) else {}
    return tuple(row for row in lost if same(row.value, declared.get(row.id)))


def make_cluster_row(
    policy: Policy, ledger_table: pa.Table, invalid: Sequence[InvalidFile] = ()
) -> ClusterRow:
    """Return a cluster's settings of the diff.

    Unmanaged quotas stay until a run was verified, and while a file is invalid.
    """
    verified = ledger_edits.VERIFIED in to_values(ledger_table["state"])
    was_verified = verified and ledger.read_notes(ledger_table).policy is not None
    clears = policy.clear_unmanaged and was_verified and not invalid
    files = "\n".join(file.file for file in invalid)
    return ClusterRow(policy.cluster_id, policy.drift, clears, f"\n{files}\n" if invalid else None)
