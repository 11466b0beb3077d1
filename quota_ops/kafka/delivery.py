"""Sends rows to a cluster: splits a request that fails as a whole, and settles lost responses."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import ClusterTrouble, NoResponse, QuotaOpsError, WrongCluster
from quota_ops.model.quotas.alteration import Alteration, group_alterations
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import Stored
from quota_ops.model.runs.outcome import (
    RESENT,
    SETTLED,
    UNSETTLED,
    EntityResponse,
    Outcome,
    Status,
    build_outcomes,
    match_outcomes,
)

Send = Callable[[Sequence[Alteration]], tuple[EntityResponse, ...]]
"""`Cluster.apply` or `Cluster.validate`."""

WHOLE = frozenset({"POLICY_VIOLATION", "UNKNOWN_SERVER_ERROR"})
"""The errors that every entity of a request gets when the controller rejects it as a whole.

Nothing of the request was written. Source: AlterClientQuotasRequest.getErrorResponse.
QuorumController limits the records of a request, and KafkaRaftClient its bytes: beyond that limit
the controller resigns.
"""

MOST_REQUESTS = 100
"""The most requests per batch: enough to find ten bad entities among a thousand."""


def send_rows(
    batch: int, rows: Sequence[Difference], send: Send, validate: Send
) -> tuple[Outcome, ...]:
    """Send the rows of a batch; return one outcome per entity.

    A request that fails as a whole is split in halves until the entities that cause it are found.
    Before each half, `validate` checks that a controller leads again. Raises the error of the
    first request; a later error ends the sending, and the outcomes of the remaining rows name it.
    """
    outcomes = match_outcomes(batch, rows, send(group_alterations(rows)))
    if not _has_failed_whole(outcomes):
        return outcomes
    known: list[Outcome] = []
    waiting = deque(_split(rows))
    requests, trouble = 0, ""
    while waiting:
        part = waiting.popleft()
        if trouble:
            known += build_outcomes(batch, part, Status.NOT_SENT, trouble)
            continue
        try:
            validate(group_alterations(part)[:1])
            outcomes = match_outcomes(batch, part, send(group_alterations(part)))
        except NoResponse as error:
            trouble = error.message
            outcomes = build_outcomes(batch, part, Status.UNKNOWN, trouble)
        except QuotaOpsError as error:
            trouble = error.message
            outcomes = build_outcomes(batch, part, Status.NOT_SENT, trouble)
        requests += 1
        if _has_failed_whole(outcomes) and requests < MOST_REQUESTS:
            waiting.extendleft(reversed(_split(part)))
        else:
            known += outcomes
    return tuple(known)


def _has_failed_whole(outcomes: Sequence[Outcome]) -> bool:
    """Return whether several entities share one error, which does not show which one caused it."""
    errors = {outcome.error for outcome in outcomes}
    return len(outcomes) > 1 and len(errors) == 1 and bool(errors & WHOLE)


def _split(rows: Sequence[Difference]) -> list[list[Difference]]:
    """Split the rows in two halves, without separating the rows of an entity."""
    entities = [list(group) for _, group in groupby(rows, key=lambda row: row.entity)]
    middle = len(entities) // 2
    return [
        [row for group in half for row in group] for half in (entities[:middle], entities[middle:])
    ]


PATIENCE = 15.0
"""Seconds to wait for a cluster to respond again."""


def write_rows(
    cluster: Cluster, batch: int, rows: Sequence[Difference], stored: Stored, *, send: Send
) -> tuple[tuple[Outcome, ...], Stored]:
    """Write the rows of a batch; return the outcomes, and the values that the cluster stores.

    These values are `stored`, or newer ones when the cluster was described again. `send` is
    `Cluster.apply`, perhaps with a check before each request. Raises ClusterTrouble, or the error
    of the check, when nothing was sent.
    """
    try:
        outcomes = send_rows(batch, rows, send, cluster.validate)
    except NoResponse as error:
        outcomes = build_outcomes(batch, rows, Status.UNKNOWN, error.message)
    unknown = {
        outcome.entity
        for outcome in outcomes
        if outcome.status is Status.UNKNOWN or outcome.error in UNSETTLED
    }
    if not unknown:
        return outcomes, stored
    unsettled = [row for row in rows if row.entity in unknown]
    settled, stored = _settle_rows(cluster, batch, unsettled, stored, send)
    answered = (outcome for outcome in outcomes if outcome.entity not in unknown)
    return (*answered, *(outcome._replace(may_arrive=True) for outcome in settled)), stored


def _settle_rows(
    cluster: Cluster, batch: int, rows: Sequence[Difference], stored: Stored, send: Send
) -> tuple[tuple[Outcome, ...], Stored]:
    """Describe the cluster to find which rows arrived, and send the others again.

    Sending again is safe, because an alteration is idempotent: it sets a value. But an entity that
    has a value neither of before nor of the request was changed meanwhile, and is left alone. Rows
    that cannot be settled are UNKNOWN, with the reason.
    """
    try:
        seen = _describe_patiently(cluster)
        missing = [row for row in rows if not same(seen.get(row.id), row.target)]
        changed = [row for row in missing if not same(seen.get(row.id), stored.get(row.id))]
        again = {row.entity for row in missing} - {row.entity for row in changed}
        resent = [row for row in rows if row.entity in again]
        retried = send_rows(batch, resent, send, cluster.validate) if resent else ()
    except QuotaOpsError as error:
        message = f"the write was sent, and its outcome cannot be found out: {error.reason}"
        return build_outcomes(batch, rows, Status.UNKNOWN, message), stored
    by_entity = {outcome.entity: _mark_retried(outcome) for outcome in retried}
    for row in changed:
        now = f"{row.key} is now {format_limit(row.key, seen.get(row.id))}"
        message = f"no response arrived, and {now}: it was not sent again"
        own = [other for other in rows if other.entity == row.entity]
        (by_entity[row.entity],) = build_outcomes(batch, own, Status.UNKNOWN, message)
    arrived = build_outcomes(batch, rows, Status.ACCEPTED, SETTLED)
    return tuple(by_entity.get(outcome.entity, outcome) for outcome in arrived), seen


def _mark_retried(outcome: Outcome) -> Outcome:
    """Mark an accepted second try as RESENT, and an error that settles nothing as UNKNOWN.

    UNKNOWN_SERVER_ERROR settles the outcome when only this entity has it: the cluster was
    described, and does not store the value.
    """
    if outcome.status is Status.ACCEPTED and outcome.message is None:
        return outcome._replace(message=RESENT)
    if outcome.error not in UNSETTLED or outcome.error in WHOLE:
        return outcome
    return outcome._replace(status=Status.UNKNOWN)


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, ClusterTrouble) and not isinstance(error, WrongCluster)


def _describe_patiently(cluster: Cluster) -> Stored:
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential

    for attempt in Retrying(
        retry=retry_if_exception(_is_transient),
        wait=wait_exponential(multiplier=0.2, max=2),
        stop=stop_after_delay(PATIENCE),
        reraise=True,
    ):
        with attempt:
            return cluster.describe_values()
    raise AssertionError
