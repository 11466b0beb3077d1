"""Settling what is unknown: a write without an answer is asked about, then sent once more."""

from collections.abc import Iterable, Sequence

from tenacity import Retrying, retry_if_exception_type, stop_after_delay
from tenacity import wait_exponential as wait_longer_each_time

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import ClusterTrouble
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.rows import BatchRow
from quota_ops.stages.halving import WHOLE, answered
from quota_ops.stages.outcomes import SETTLED, UNSETTLED, all_of
from quota_ops.stages.stored import Stored

PATIENCE = 15.0
"""Seconds that a cluster is given to answer again."""


def settle(
    cluster: Cluster, batch: int, rows: Sequence[BatchRow], stored: Stored
) -> tuple[tuple[Outcome, ...], Stored]:
    """Find out what became of rows whose write got no answer; what did not arrive is sent again.

    Sending again is safe: an alteration says what shall be, not by how much. Rows that stay
    unknown are UNKNOWN, with the reason.
    """
    try:
        seen = _describe(cluster)
        left = _missing(rows, seen)
        answers = answered(batch, left, cluster.apply, cluster.validate) if left else ()
    except ClusterTrouble as error:
        return all_of(batch, rows, Status.UNKNOWN, error.message), stored
    again = {one.entity: one for one in answers}
    arrived = all_of(batch, rows, Status.ACCEPTED, SETTLED)
    return (
        tuple(_named(again.get(one.entity, one)) for one in arrived),
        seen,
    )


def _named(one: Outcome) -> Outcome:
    """An answer that still does not say what happened is UNKNOWN, not refused.

    UNKNOWN_SERVER_ERROR says it when an entity has it alone, and describing did not find it.
    """
    if one.error not in UNSETTLED or one.error in WHOLE:
        return one
    return one._replace(status=Status.UNKNOWN)


def _missing(rows: Iterable[BatchRow], stored: Stored) -> list[BatchRow]:
    return [row for row in rows if stored.get((row.entity, row.key)) != row.after]


def _describe(cluster: Cluster) -> Stored:
    for attempt in Retrying(
        retry=retry_if_exception_type(ClusterTrouble),
        wait=wait_longer_each_time(multiplier=0.2, max=2),
        stop=stop_after_delay(PATIENCE),
        reraise=True,
    ):
        with attempt:
            return cluster.stored()
    raise AssertionError
