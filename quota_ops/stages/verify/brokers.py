"""Reads rows back from each broker until all brokers agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import monotonic, sleep

from quota_ops.kafka.brokers import explain_read_failure
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.entity import Entity
from quota_ops.model.errors import ClusterTrouble, Refused, Unreachable, WrongCluster
from quota_ops.model.progress import Progress
from quota_ops.model.rows import Key, Stored, Targets, find_unequal
from quota_ops.model.text import counted, plural
from quota_ops.model.verification import (
    BACK_OR_GONE,
    BOOTSTRAP,
    ONLY_BOOTSTRAP,
    BrokerResult,
    RowVerdict,
    Verdict,
)

FIRST_WAIT, LONGEST_WAIT = 0.02, 2.0
"""The first and the longest wait between two rounds, in seconds; the wait doubles each time."""

_SOON, _SHORT_WAIT = 0.5, 0.005
"""Seconds within which a small cluster returns a write, and between two queries for it."""


def query_brokers(
    cluster: Cluster,
    targets: Targets,
    seconds: float,
    progress: Progress,
    written: str | None = None,
    *,
    is_overtaken: Callable[[], bool] = lambda: False,
    skipped: int = 0,
) -> tuple[dict[int, Stored], tuple[BrokerResult, ...]]:
    """Query each broker until it stores every target, the time is up, or a later run applies.

    Returns the values and one result of each broker. `written` is the last entity that was
    written: brokers apply writes in order, so it alone is queried first, for at most half a
    second. When only the bootstrap address is queried, the result is that of the broker there.
    `skipped` is the number of rows that the run did not write; they are not targets.
    Raises WrongCluster when an address leads to another cluster.
    """
    until = monotonic() + seconds
    stored: dict[int, Stored] = {}
    results = {
        endpoint.id: BrokerResult(
            *(endpoint.id, endpoint.address, 0, None),
            bootstrap=endpoint.id == BOOTSTRAP,
            compared=len(targets),
            left=skipped,
        )
        for endpoint in cluster.endpoints
    }
    wait = FIRST_WAIT
    while True:
        last = monotonic() >= until
        for broker, result in results.items():
            # An unreachable broker uses up time, so the last round queries only the others.
            if not result.agrees and not (last and result.error):
                results[broker] = _query_broker(cluster, result, targets, stored, written)
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
    cluster: Cluster,
    last: BrokerResult,
    targets: Targets,
    stored: dict[int, Stored],
    written: str | None,
) -> BrokerResult:
    query = replace(last, asked=last.asked + 1)
    try:
        if written is not None and last.asked == 0:
            _wait_for_write(cluster, last.broker, targets, written)
        stored[last.broker] = cluster.describe_values(last.broker)
    except WrongCluster:
        raise
    except ClusterTrouble as error:
        stored.pop(last.broker, None)
        return replace(query, behind=None, error=explain_read_failure(error))
    return replace(query, behind=len(find_unequal(targets, stored[last.broker])), error=None)


def _wait_for_write(cluster: Cluster, broker: int, targets: Targets, written: str) -> None:
    """Wait at most half a second until a broker stores the targets of one entity."""
    until, entity = monotonic() + _SOON, Entity.parse(written)
    wanted = {row: value for row, value in targets.items() if row[0] == written}
    while find_unequal(wanted, cluster.describe_values(broker, entity=entity)):
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
    late_writes: str,
    retry: str,
) -> None:
    """Raise Refused when a broker differs or did not respond, Unreachable when none responded.

    `late_writes` describes the late writes among the wrong rows; `retry` is the command that
    verifies again.
    """
    unreachable = [
        f"{broker.named} {broker.error}" if broker.absent else broker.error
        for broker in brokers
        if broker.error is not None
    ]
    differing = [
        f"{broker.named} differs from Git in {counted(broker.behind, 'key')}"
        for broker in brokers
        if broker.behind
    ]
    if not (unreachable or differing):
        return
    message = "; ".join([*differing, *unreachable])
    if len(unreachable) == len(brokers):
        raise Unreachable(
            f"no broker could be queried: {message}", f"Verify again when one responds: {retry}"
        )
    if wrong_rows:
        are = plural(len(wrong_rows), "row differs", "rows differ")
        remedy = f"{len(wrong_rows):,} {are} from Git.{late_writes}"
    else:
        has_unreachable = any(broker.error and not broker.absent for broker in brokers)
        what = (
            f"Verify again when it responds: {retry}\n  {ONLY_BOOTSTRAP}"
            if has_unreachable
            else BACK_OR_GONE
        )
        every = "every row that was compared" if brokers[0].left else "every row"
        remedy = f"The others store {every}. {what}"
    raise Refused(f"{_describe_trouble(brokers)}: {message}", remedy)


def _describe_trouble(brokers: Sequence[BrokerResult]) -> str:
    if brokers[0].bootstrap:
        return "the bootstrap address does not store the desired values"
    if all(broker.agrees or broker.absent for broker in brokers):
        return "not every broker could be queried"
    return "not every broker stores the desired values"
