"""The write loop of every run: sends batches in order, and records the outcome of each row."""

from collections.abc import Callable, Iterable, Sequence

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.delivery import Send, write_rows
from quota_ops.model.errors import Claimed, InvalidInput, NoResponse, QuotaOpsError, Refused
from quota_ops.model.moment import uptime
from quota_ops.model.quotas.difference import Batches, Difference
from quota_ops.model.quotas.rows import Stored
from quota_ops.model.runs.outcome import Outcome, Status, build_outcomes
from quota_ops.model.runs.progress import SILENT, Progress
from quota_ops.store.run.attempt import Attempt

OLDEST = 60.0
"""Seconds after which nothing is sent because of a description of the cluster."""


def refuse_old(cluster: Cluster) -> None:
    """Raise Refused if the cluster was last described too long before a request.

    What somebody has changed or held since then would be overwritten.
    """
    if (age := uptime() - cluster.described_at) > OLDEST:
        raise Refused(
            f"the cluster was described {age:,.0f} s ago: this process was paused, or the run "
            "store responds too slowly"
        )


def write_batches(
    attempt: Attempt,
    batches: Batches,
    write: Callable[[int, Sequence[Difference]], tuple[Outcome, ...]],
    record: Callable[[], None],
    progress: Progress = SILENT,
) -> QuotaOpsError | None:
    """Write batches in order, record each outcome, and return the error that stopped it, or None.

    `write` sends the rows of a batch with `send_noted`, and returns their outcomes. After an error
    or an unknown outcome nothing more is sent. `record` writes the outcomes of the whole attempt,
    also if a signal ends it. Raises InvalidInput or Refused, with what was sent, if the run store
    fails; Claimed if another process has taken over the run.
    """
    try:
        trouble = _write_in_order(attempt, batches, write, progress)
        # Why here: writing outcomes would create the folder again if it was moved meanwhile.
        attempt.require_folder()
        record()
    except InvalidInput as error:
        raise attempt.record_store_error(batches, error) from error
    except QuotaOpsError:
        raise
    except BaseException:  # a signal, or Airflow's timeout of the task
        attempt.stop(batches)
        record()
        raise
    return trouble


def _write_in_order(
    attempt: Attempt,
    batches: Batches,
    write: Callable[[int, Sequence[Difference]], tuple[Outcome, ...]],
    progress: Progress,
) -> QuotaOpsError | None:
    trouble: QuotaOpsError | None = None
    for number, rows in batches.items():
        attempt.begin(number)
        if trouble is not None:
            attempt.keep(number, build_outcomes(number, rows, Status.NOT_SENT, trouble.message))
            continue
        try:
            batch = write(number, rows)
        except Claimed:
            raise
        except QuotaOpsError as error:
            trouble = error
            batch = build_outcomes(number, rows, Status.NOT_SENT, error.message)
        batch = attempt.keep(number, batch)
        progress.report_batch(number, len(batches), batch)
        if any(outcome.status is Status.UNKNOWN for outcome in batch):
            trouble = NoResponse(
                "the outcome of an earlier batch is unknown, so nothing more was sent"
            )
    return trouble


def send_noted(
    attempt: Attempt,
    cluster: Cluster,
    number: int,
    rows: Sequence[Difference],
    stored: Stored,
    *,
    send: Send,
    others: Iterable[Outcome] = (),
) -> tuple[tuple[Outcome, ...], Stored]:
    """Record the rows as unknown, send them; return their outcomes and the last known values.

    `others` are the outcomes of the rows of the batch that are not sent.
    """
    unknown = build_outcomes(number, rows, Status.UNKNOWN, None, may_arrive=True)
    # Why here: before the request. If this process dies, the folder has what may arrive.
    attempt.note(number, (*others, *unknown))
    return write_rows(cluster, number, rows, stored, send=send)
