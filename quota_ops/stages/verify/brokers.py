"""Reads rows back from each broker until all brokers agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from time import monotonic, sleep
from typing import NamedTuple

from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters.cluster_facts import KnownBrokers, Metadata, Registered
from quota_ops.model.errors import ClusterTrouble, Refused, Unreachable, WrongCluster
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import Key, Stored, Targets, find_unequal
from quota_ops.model.runs.progress import SILENT, Progress
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.verification import (
    BACK_OR_GONE,
    BOOTSTRAP,
    ONLY_BOOTSTRAP,
    BrokerResult,
    RowVerdict,
    Verdict,
)
from quota_ops.model.text import counted, plural
from quota_ops.precedence.changed_limits import ANY_IP
from quota_ops.stages.describe.absent_brokers import add_absent_brokers
from quota_ops.store.run.files import METADATA, VERIFICATION
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

FIRST_WAIT, LONGEST_WAIT = 0.02, 2.0
"""The first and the longest wait between two rounds, in seconds; the wait doubles each time."""

_LEAST_LIMIT = 1.0
"""The least timeout of one query, in seconds; it is half of the time of all, if that is more."""
FEW = 5
"""The most rows that a message lists."""
_SOON, _SHORT_WAIT = 0.5, 0.005
"""Seconds within which a small cluster returns a write, and between two queries for it."""


def compute_deadline(rows: int) -> float:
    """Return the deadline, in seconds, for all brokers to return `rows` stored values.

    The time that a broker takes to apply metadata grows with the state: milliseconds on a small
    cluster, half a minute after 100,000 changes.
    """
    return 10.0 + rows / 1000


class ReadBack(NamedTuple):
    """The values that each broker returned, their results, and the rows that differ."""

    targets: Targets
    stored: Mapping[int, Stored]
    brokers: tuple[BrokerResult, ...]
    wrong_rows: tuple[RowVerdict, ...]
    registered: tuple[Registered, ...] | None
    metadata: Metadata

    @property
    def verified(self) -> Targets:
        """The targets that every responding broker stores."""
        wrong, targets = {verdict.id for verdict in self.wrong_rows}, self.targets
        return {row: targets[row] for row in targets if row not in wrong} if wrong else targets

    def write(self, folder: RunFolder, undeclared: Sequence[Difference] = ()) -> None:
        """Write verification.json and metadata.json.

        `undeclared` are the rows that are still stored, and that runs would clear.
        """
        count = len(self.targets) - len(self.wrong_rows)
        verification = Verification(
            iso_utc(),
            count,
            RunState(folder).attempt,
            self.brokers,
            self.wrong_rows,
            addresses=sum(
                row.entity.startswith("ip=") and row.entity != ANY_IP for row in self.targets
            ),
            undeclared=len(undeclared),
            moved=sum(row.kind in {Kind.CHANGED_SINCE, Kind.RETURNED} for row in undeclared),
        )
        folder.write(VERIFICATION, verification)
        folder.write(METADATA, self.metadata)


def read_back(
    cluster: Cluster,
    policy: Policy,
    targets: Targets,
    known: KnownBrokers,
    *,
    progress: Progress = SILENT,
    last_written: str | None,
    is_overtaken: Callable[[], bool] = lambda: False,
    skipped: int = 0,
) -> ReadBack:
    """Query each broker until it stores every target, the time is up, or a later run applies.

    `known` are the brokers of the last verified run. A registered broker that cannot be queried is
    among the results, and does not agree. `last_written` is the last entity that was written:
    brokers apply writes in order, so it alone is queried first, for at most half a second.
    `skipped` is the number of rows that the run did not write; they are not targets.
    Raises WrongCluster when an address leads to another cluster.
    """
    find_metadata = cluster.start_metadata_query()
    stored, results = _query_brokers(cluster, targets, last_written, progress, is_overtaken)
    responder = min(results, key=lambda result: (not result.agrees, result.lagging is None))
    metadata, registered = add_absent_brokers(
        find_metadata(),
        cluster,
        policy,
        known,
        broker=BOOTSTRAP if responder.bootstrap else responder.broker,
    )
    brokers = [replace(result, skipped=skipped) for result in results]
    if not responder.bootstrap:
        brokers += map(BrokerResult.of_absent, metadata.missed)
    wrong_rows = tuple(find_wrong_rows(targets, stored))
    return ReadBack(targets, stored, tuple(brokers), wrong_rows, registered, metadata)


def _query_brokers(
    cluster: Cluster,
    targets: Targets,
    written: str | None,
    progress: Progress,
    is_overtaken: Callable[[], bool],
) -> tuple[dict[int, Stored], tuple[BrokerResult, ...]]:
    """Return the values and one result of each broker.

    When only the bootstrap address is queried, the result comes from the broker there.
    """
    seconds = compute_deadline(len(targets))
    until, limit = monotonic() + seconds, max(seconds / 2, _LEAST_LIMIT)
    stored: dict[int, Stored] = {}
    results = {
        endpoint.id: BrokerResult(
            endpoint.id,
            endpoint.address,
            queries=0,
            lagging=None,
            bootstrap=endpoint.id == BOOTSTRAP,
            compared=len(targets),
        )
        for endpoint in cluster.endpoints
    }
    wait = FIRST_WAIT
    while True:
        last = monotonic() >= until
        for broker, result in results.items():
            # An unreachable broker uses up time, so the last round queries only the others.
            if not result.agrees and not (last and result.error):
                stored.pop(broker, None)
                results[broker], values = _query_broker(cluster, result, targets, written, limit)
                if values is not None:
                    stored[broker] = values
        remaining = max(until - monotonic(), 0.0)
        progress.report_brokers(tuple(results.values()), remaining)
        if last or all(result.agrees for result in results.values()) or is_overtaken():
            break
        sleep(min(wait, remaining))
        wait = min(wait * 2, LONGEST_WAIT)
    if BOOTSTRAP in stored:
        responder = cluster.identify_broker()
        results[BOOTSTRAP] = replace(results[BOOTSTRAP], broker=responder)
        stored = {responder: stored[BOOTSTRAP]}
    return stored, tuple(results.values())


def _query_broker(
    cluster: Cluster, last: BrokerResult, targets: Targets, written: str | None, limit: float
) -> tuple[BrokerResult, Stored | None]:
    """Return the result of one query, and the values; None if the broker did not respond."""
    query = replace(last, queries=last.queries + 1)
    try:
        if written is not None and last.queries == 0:
            _wait_for_write(cluster, last.broker, targets, written, limit)
        values = cluster.describe_values(last.broker, limit)
    except WrongCluster:
        raise
    except ClusterTrouble as error:
        return replace(query, lagging=None, error=error.reason), None
    return replace(query, lagging=len(find_unequal(targets, values)), error=None), values


def _wait_for_write(
    cluster: Cluster, broker: int, targets: Targets, written: str, limit: float
) -> None:
    """Wait at most half a second until a broker stores the targets of one entity."""
    until, entity = monotonic() + _SOON, Entity.parse(written)
    wanted = {row: value for row, value in targets.items() if row[0] == written}
    while find_unequal(wanted, cluster.describe_values(broker, limit, entity)):
        if monotonic() >= until:
            return
        sleep(_SHORT_WAIT)


def find_wrong_rows(targets: Targets, stored: Mapping[int, Stored]) -> Iterable[RowVerdict]:
    """Yield the rows that differ from their target, with the value on each responding broker."""
    if not stored:
        for (entity, key), value in targets.items():
            yield RowVerdict(entity, key, value, Verdict.UNANSWERED)
        return
    wrong: dict[Key, list[tuple[int, float | None]]] = {}
    for broker, values in stored.items():
        for row in find_unequal(targets, values):
            wrong.setdefault(row, []).append((broker, values.get(row)))
    for row, seen in sorted(wrong.items()):
        yield RowVerdict(*row, targets[row], Verdict.DIFFERS, tuple(seen))


def raise_unless_agreed(
    brokers: Sequence[BrokerResult],
    wrong_rows: Sequence[RowVerdict],
    *,
    others: str,
    retry: str,
    wanted: str = "Git",
    sent: AbstractSet[Key] | None = None,
) -> None:
    """Raise Refused when a broker differs or did not respond, Unreachable when none responded.

    `others` describes late writes, and rows that would be cleared; `retry` is the command that
    verifies again; `wanted` is what the rows are compared with; `sent` has the rows that the run
    wanted to write, None if it was not applied.
    """
    unreachable = [
        f"{broker.named} {broker.error}" if broker.absent else broker.error
        for broker in brokers
        if broker.error is not None
    ]
    differing = [
        f"{broker.named} differs from {wanted} in {counted(broker.lagging, 'key')}"
        for broker in brokers
        if broker.lagging
    ]
    if not (unreachable or differing):
        return
    if agree := not unreachable and _agree_with_each_other(brokers, wrong_rows):
        differing = _list_values(wrong_rows, wanted)
    message = "; ".join([*differing, *unreachable])
    if len(unreachable) == len(brokers):
        raise Unreachable(
            f"no broker could be queried: {message}", f"Verify again when one responds: {retry}"
        )
    if wrong_rows:
        are = plural(len(wrong_rows), "row differs", "rows differ")
        remedy = f"{len(wrong_rows):,} {are} from {wanted}.{others}"
        if agree and sent is not None and sent.isdisjoint(row.id for row in wrong_rows):
            them = plural(len(wrong_rows), "it", "them")
            remedy += (
                f" This run did not write {them}: something else changed {them} meanwhile, and no "
                "broker is at fault. A new plan shows what to do."
            )
    else:
        has_unreachable = any(broker.error and not broker.absent for broker in brokers)
        what = (
            f"Verify again when it responds: {retry}\n  {ONLY_BOOTSTRAP}"
            if has_unreachable
            else BACK_OR_GONE
        )
        every = "every row that was compared" if brokers[0].skipped else "every row"
        remedy = f"The others store {every}. {what}"
    raise Refused(f"{_describe_trouble(brokers, agree=agree)}: {message}", remedy)


def _agree_with_each_other(
    brokers: Sequence[BrokerResult], wrong_rows: Iterable[RowVerdict]
) -> bool:
    """Return whether all brokers store the same value in each of the rows."""
    return not brokers[0].bootstrap and all(
        len(row.seen) == len(brokers) and len({value for _, value in row.seen}) == 1
        for row in wrong_rows
    )


def _list_values(wrong_rows: Sequence[RowVerdict], wanted: str) -> list[str]:
    """Return the value of the first rows, which all brokers store, and what it must be."""
    more = [f"{len(wrong_rows) - FEW:,} more"] if wrong_rows[FEW:] else []
    return [
        f"{row.entity} {row.key} is {format_limit(row.key, row.seen[0][1])}, "
        f"{wanted}: {format_limit(row.key, row.expected)}"
        for row in wrong_rows[:FEW]
    ] + more


def _describe_trouble(brokers: Sequence[BrokerResult], *, agree: bool) -> str:
    if agree:
        all_brokers = f"all {counted(len(brokers), 'broker')} store"
        who = "the broker stores" if len(brokers) == 1 else all_brokers
        return f"{who} other values than desired"
    if brokers[0].bootstrap:
        return "the bootstrap address does not store the desired values"
    if all(broker.agrees or broker.absent for broker in brokers):
        return "not every broker could be queried"
    return "not every broker stores the desired values"
