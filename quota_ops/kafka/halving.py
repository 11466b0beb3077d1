"""A request that fails whole, because of one entity or of its size, is halved and asked again."""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby

from quota_ops.kafka.outcomes import all_of, outcomes_of
from quota_ops.model.alteration import Alteration, alterations
from quota_ops.model.errors import NoAnswer, QuotaOpsError
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
