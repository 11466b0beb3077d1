"""Send rows: halve a request that fails whole, and settle a write without a response."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.outcomes import RESENT, SETTLED, UNSETTLED, Stored, all_of, outcomes_of
from quota_ops.model.alteration import Alteration, alterations
from quota_ops.model.errors import ClusterTrouble, NoAnswer, QuotaOpsError, WrongCluster
from quota_ops.model.outcome import EntityAnswer, Outcome, Status
from quota_ops.model.rows import BatchRow

Ask = Callable[[Sequence[Alteration]], tuple[EntityAnswer, ...]]
"""`Cluster.apply` or `Cluster.validate`."""

WHOLE = frozenset({"POLICY_VIOLATION", "UNKNOWN_SERVER_ERROR"})
"""What every entity of a request is answered when the controller could not do it at all.

Nothing of it was written. Source: AlterClientQuotasRequest.getErrorResponse; the bound of
records is QuorumController's, that of bytes KafkaRaftClient's, whose controller then resigns.
"""

MOST_REQUESTS = 100
"""Requests that one batch may take: enough to find ten bad entities among a thousand."""


def answered(batch: int, rows: Sequence[BatchRow], ask: Ask, probe: Ask) -> tuple[Outcome, ...]:
    """What became of each entity, one that spoils every request that it is in told from the others.

    `probe` asks for nothing, and answers when a controller leads again. Raises what the first
    request raises; of what trouble keeps from being sent afterwards the outcome says so.
    """
    whole = outcomes_of(batch, rows, ask(alterations(rows)))
    if not _failed_whole(whole):
        return whole
    known: list[Outcome] = []
    waiting = deque(_halves(rows))
    requests, trouble = 0, ""
    while waiting:
        part = waiting.popleft()
        if trouble:
            known += all_of(batch, part, Status.NOT_SENT, trouble)
            continue
        try:
            probe(alterations(part)[:1])
            said = outcomes_of(batch, part, ask(alterations(part)))
        except NoAnswer as error:
            said, trouble = all_of(batch, part, Status.UNKNOWN, error.message), error.message
        except QuotaOpsError as error:
            said, trouble = all_of(batch, part, Status.NOT_SENT, error.message), error.message
        requests += 1
        if _failed_whole(said) and requests < MOST_REQUESTS:
            waiting.extendleft(reversed(_halves(part)))
        else:
            known += said
    return tuple(known)


def _failed_whole(outcomes: Sequence[Outcome]) -> bool:
    """Whether several entities have one and the same answer, which does not say whose fault."""
    errors = {one.error for one in outcomes}
    return len(outcomes) > 1 and len(errors) == 1 and bool(errors & WHOLE)


def _halves(rows: Sequence[BatchRow]) -> list[list[BatchRow]]:
    """The rows in two, those of an entity together."""
    entities = [list(group) for _, group in groupby(rows, key=lambda row: row.entity)]
    middle = len(entities) // 2
    return [
        [row for group in half for row in group] for half in (entities[:middle], entities[middle:])
    ]


PATIENCE = 15.0
"""Seconds that a cluster is given to answer again."""


def sent(
    cluster: Cluster, batch: int, rows: Sequence[BatchRow], stored: Stored, *, send: Ask
) -> tuple[tuple[Outcome, ...], Stored]:
    """What became of the rows of a batch, and what the cluster stored when last asked.

    `send` is `Cluster.apply`, or that and a look before each request. Raises ClusterTrouble, or
    what the look raises, when nothing was sent.
    """
    try:
        answers = answered(batch, rows, send, cluster.validate)
    except NoAnswer as error:
        answers = all_of(batch, rows, Status.UNKNOWN, error.message)
    unknown = {
        one.entity for one in answers if one.status is Status.UNKNOWN or one.error in UNSETTLED
    }
    if not unknown:
        return answers, stored
    unsettled = [row for row in rows if row.entity in unknown]
    settled, stored = _settle(cluster, batch, unsettled, stored, send)
    return (*(one for one in answers if one.entity not in unknown), *settled), stored


def _settle(
    cluster: Cluster, batch: int, rows: Sequence[BatchRow], stored: Stored, send: Ask
) -> tuple[tuple[Outcome, ...], Stored]:
    """Find out what became of rows whose write got no answer; what did not arrive is sent again.

    Sending again is safe: an alteration says what shall be, not by how much. Rows that stay
    unknown are UNKNOWN, with the reason.
    """
    try:
        seen = _describe(cluster)
        left = _missing(rows, seen)
        answers = answered(batch, left, send, cluster.validate) if left else ()
    except QuotaOpsError as error:
        # What asking came to is no word about the write: that was sent.
        why = error.message.removesuffix(" Nothing was sent.").removesuffix(" Nothing was changed.")
        words = f"it was sent, and what became of it cannot be found out: {why}"
        return all_of(batch, rows, Status.UNKNOWN, words), stored
    again = {one.entity: one for one in answers}
    arrived = all_of(batch, rows, Status.ACCEPTED, SETTLED)
    return (
        tuple(_named(again.get(one.entity, one)) for one in arrived),
        seen,
    )


def _named(one: Outcome) -> Outcome:
    """An answer to what was sent again; one that does not say what happened is UNKNOWN.

    UNKNOWN_SERVER_ERROR says it when an entity has it alone, and describing did not find it.
    """
    if one.status is Status.ACCEPTED and one.message is None:
        return one._replace(message=RESENT)
    if one.error not in UNSETTLED or one.error in WHOLE:
        return one
    return one._replace(status=Status.UNKNOWN)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ClusterTrouble) and not isinstance(error, WrongCluster)


def _missing(rows: Iterable[BatchRow], stored: Stored) -> list[BatchRow]:
    return [row for row in rows if stored.get(row.id) != row.after]


def _describe(cluster: Cluster) -> Stored:
    from tenacity import (  # noqa: PLC0415 - rarely needed
        Retrying,
        retry_if_exception,
        stop_after_delay,
        wait_exponential,
    )

    for attempt in Retrying(
        retry=retry_if_exception(_may_pass),
        wait=wait_exponential(multiplier=0.2, max=2),
        stop=stop_after_delay(PATIENCE),
        reraise=True,
    ):
        with attempt:
            return cluster.stored()
    raise AssertionError
