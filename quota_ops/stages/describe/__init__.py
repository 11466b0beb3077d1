"""describe: read every quota that the cluster stores, and the ledger at that moment."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import cycle
from time import monotonic, sleep

import pyarrow as pa
from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters.cluster_facts import Metadata
from quota_ops.model.errors import ClusterTrouble, Refused
from quota_ops.model.finding import InvalidFile
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import FilterIndex
from quota_ops.model.quotas.quota import NEWLY_PROTECTED, PROTECTED, explain_unalterable, same
from quota_ops.model.quotas.rows import (
    ActualRow,
    ClusterRow,
    Key,
    LostLimit,
    Stored,
    StoredQuota,
    Targets,
    find_unequal,
)
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, HOLDS, LEDGER
from quota_ops.model.runs.run import Described
from quota_ops.model.text import name_first
from quota_ops.stages.describe.absent_brokers import add_absent_brokers
from quota_ops.stages.describe.lost_limits import find_lost_limits
from quota_ops.stages.describe.rates import divide_declared
from quota_ops.stages.succession import read_applied_policy, take_number_above
from quota_ops.store.ledger import claims, ledger, ledger_end
from quota_ops.store.ledger.holds import held_entities, holds_now
from quota_ops.store.ledger.ledger import LedgerFile, damaged
from quota_ops.store.ledger.notes import known_brokers
from quota_ops.store.places.parquet import to_values
from quota_ops.store.places.place import measure_lead
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.places.snapshot import Snapshot
from quota_ops.store.run.files import CHECKED, DESCRIBED, FACTS, METADATA, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import NamedCluster


def describe_cluster(
    folder: RunFolder,
    cluster: Cluster | Snapshot,
    records: ClusterStore,
    *,
    files: str = "",
    skip_invalid: bool = False,
) -> None:
    """Write the tables actual, ledger, holds and clusters, and the facts and metadata.

    First, limits of the whole cluster are divided; Problems show files below the path `files`.
    With `skip_invalid`, files with a limit that cannot be divided are left out as invalid ones are.
    A quota that seems to have changed outside Git is queried a second time. The ledger is read
    first: a row that another run writes in between then looks unmanaged, and an unmanaged row
    never looks managed. A ledger that was copied from another run store may have larger run
    numbers than this store; this run then takes a number above them.
    """
    policy = folder.policy()
    end, claimed = ledger_end.read(records), claims.last_number(records)
    known, holds = ledger.last(records), holds_now(records.holds)
    undivided = divide_declared(folder, cluster, known.table, files, skip_invalid=skip_invalid)
    find_facts, find_metadata = cluster.start_facts_query(), cluster.start_metadata_query()
    applied = read_applied_policy(folder, known.table)
    actual = list(judge_scope(policy, cluster.describe(), applied))
    described = {row.id: row.value for row in actual}
    stored, disagree = confirm_stored(cluster, described, known)
    if stored is not described:
        actual = list(judge_scope(policy, _stored_quotas(stored), applied))
    lost = _find_lost(folder, policy, stored)
    not_applied = {row.id for row in lost}
    at = datetime.now(UTC)
    facts, metadata = find_facts(), find_metadata()
    if not isinstance(cluster, Snapshot):
        metadata, _ = add_absent_brokers(metadata, cluster, policy, known_brokers(known.table))
    if disagree:
        metadata = replace(metadata or Metadata(), disagree=disagree)
    take_number_above(folder, known.table, claimed)
    folder.write_table(ACTUAL, [row for row in actual if row.id not in not_applied])
    folder.write_arrow(LEDGER, known.table)
    folder.write_table(HOLDS, list(held_entities(folder, policy.cluster_id, holds)))
    reads_git = folder.has(DESIRED.file) and not folder.has(ROLLBACK)
    invalid = folder.read(CHECKED).invalid if reads_git else ()  # never as if none were invalid
    folder.write_table(CLUSTERS, [make_cluster_row(policy, known.table, (*invalid, *undivided))])
    lead = measure_lead(folder.place / HOLDS.file) if records.holds.list() else 0.0
    folder.write(
        DESCRIBED,
        Described(
            at=iso_utc(at),
            snapshot=cluster.place if isinstance(cluster, Snapshot) else None,
            cluster_id=cluster.cluster_id,
            brokers=tuple(f"{broker.id} {broker.host}:{broker.port}" for broker in cluster.brokers),
            ledger=known.name,
            old_ledger=ledger_end.explain_old_copy(records, known.name, end),
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
    cluster = NamedCluster((folder.about().cluster,), policy.cluster_id)
    lost = find_lost_limits(folder.store, cluster, stored)
    rows = folder.read_rows(DESIRED) if lost and folder.has(DESIRED.file) else ()
    declared = {row.id: row.value for row in rows}
    return tuple(row for row in lost if same(row.value, declared.get(row.id)))


def make_cluster_row(
    policy: Policy, ledger_table: pa.Table, invalid: Sequence[InvalidFile] = ()
) -> ClusterRow:
    """Return a cluster's settings of the diff.

    Unmanaged quotas stay until a run was verified, and while a file is invalid.
    """
    verified = ledger_edits.VERIFIED in to_values(ledger_table["state"])
    was_verified = verified and ledger.read_applied_notes(ledger_table)[0] is not None
    clears = policy.clear_unmanaged and was_verified and not invalid
    files = "\n".join(file.file for file in invalid)
    return ClusterRow(policy.cluster_id, policy.drift, clears, f"\n{files}\n" if invalid else None)


def _stored_quotas(stored: Stored) -> Iterator[StoredQuota]:
    for (text, key), value in stored.items():
        yield StoredQuota(Entity.parse(text), key, value)


def judge_scope(
    policy: Policy, stored: Iterable[StoredQuota], applied: Policy | None = None
) -> Iterator[ActualRow]:
    """Yield the stored quotas with whether runs may write each of them, by a policy.

    What only this policy protects, and not the last applied one, is newly protected.
    """
    scope, protect = FilterIndex(policy.scope), FilterIndex(policy.protect)
    agreed = protect if applied is None else FilterIndex(applied.protect)
    last: Entity | None = None
    types: tuple[str, ...] = ()
    text, in_scope, protected = "", False, ""
    for entity, key, value in stored:
        if entity is not last:
            last, text, types = entity, entity.text, entity.types
            in_scope = scope.find_match(entity) is not None
            protected = ""
            if protect.find_match(entity) is not None:
                is_agreed = agreed.find_match(entity) is not None
                protected = PROTECTED if is_agreed else NEWLY_PROTECTED
        hands_off = protected or explain_unalterable(types, key)
        yield ActualRow(policy.cluster_id, text, key, value, in_scope, hands_off)


PATIENCE = 5.0
"""Seconds within which two responses must agree."""
LIMIT = 2.0
"""The timeout of one broker's response, in seconds."""

Changed = frozenset[tuple[str, str, str]]
"""Rows that differ from the verified value: entity, key and the currently stored value."""


def confirm_stored(
    cluster: Cluster | Snapshot, described: Stored, known: LedgerFile
) -> tuple[Stored, tuple[tuple[int, int], ...]]:
    """Return the stored values, and each broker that disagrees with its number of differing rows.

    A broker may respond from old metadata, without an error. If managed rows seem to have changed
    in the first response, `described`, brokers are queried in turn until two consecutive responses
    agree on those rows. If no two agree in time, the response with the fewest changed rows is used.

    Raises InvalidInput when the ledger has a row with an invalid Kafka entity.
    """
    verified = _read_verified(known.table)
    changed = first = _find_changed(described, verified)
    _check_entities(known, (text for text, key, _ in changed if (text, key) not in described))
    if not changed or isinstance(cluster, Snapshot):
        return described, ()
    responses: dict[int, tuple[Changed, Stored]] = {cluster.last_responder: (changed, described)}
    for broker, stored in _query_in_turn(cluster):
        before, changed = changed, _find_changed(stored, verified)
        responses[broker] = changed, stored
        if changed == before:
            break
    else:
        changed, stored = min(responses.values(), key=lambda response: len(response[0]))
    differs = {broker: len(found ^ changed) for broker, (found, _) in responses.items()}
    disagree = tuple((broker, rows) for broker, rows in sorted(differs.items()) if rows)
    return described if changed == first else stored, disagree


def _check_entities(known: LedgerFile, texts: Iterable[str]) -> None:
    for text in texts:
        try:
            Entity.parse(text)
        except ValueError:
            raise damaged(f"{known.name} has rows of the invalid entity {text!r}") from None


def _query_in_turn(cluster: Cluster) -> Iterator[tuple[int, Stored]]:
    """Yield each broker's id and stored values until the timeout; query the last responder last."""
    until = monotonic() + PATIENCE
    others = [
        endpoint.id for endpoint in cluster.endpoints if endpoint.id != cluster.last_responder
    ]
    for broker in cycle([*others, cluster.last_responder]):
        with suppress(ClusterTrouble):
            yield broker, cluster.describe_values(broker, LIMIT)
        if monotonic() > until:
            return
        sleep(0.02)


def refuse_disagreement(
    cluster: Cluster, described: Stored, keys: Collection[Key] | None = None
) -> None:
    """Raise Refused if a second response has other values: one of them may be of old metadata.

    It is of another broker if there is one. Only `keys` count, or all rows without them. Raises
    ClusterTrouble if no broker responds again.
    """
    first = cluster.last_responder
    response = next(_query_in_turn(cluster), None)
    if response is None:
        raise ClusterTrouble("no broker responded a second time", "Nothing was written. Try again.")
    second, stored = response
    rows = described.keys() | stored.keys() if keys is None else keys
    differing = [row for row in sorted(rows) if not same(described.get(row), stored.get(row))]
    if differing:
        brokers = " and ".join(f"broker {broker}" for broker in sorted({first, second}))
        raise Refused(
            f"{brokers} responded with different values of {name_first(map(' '.join, differing))}",
            "Nothing was written. If nobody is changing quotas now, a broker has old metadata: run "
            "the command again when it follows the controllers.",
        )


def _read_verified(ledger: pa.Table) -> Targets:
    columns = (to_values(ledger[name]) for name in ("entity", "key", "value", "state"))
    return {
        Key(entity, key): value
        for entity, key, value, state in zip(*columns, strict=True)
        if state == VERIFIED and value is not None
    }


def _find_changed(stored: Stored, verified: Targets) -> Changed:
    return frozenset((*row, str(stored.get(row))) for row in find_unequal(verified, stored))
