"""apply: look again, note the intent, send batch after batch, keep what became of each entity."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from time import monotonic

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import NoAnswer, QuotaOpsError, Refused
from quota_ops.model.outcome import MEANT, Outcome, Status
from quota_ops.model.progress import SILENT, Progress
from quota_ops.model.quota import format_limit
from quota_ops.model.rows import BatchRow
from quota_ops.run_folder import APPLIED, RunFolder, batch_file
from quota_ops.stages.approval import approved_plan
from quota_ops.stages.holding import without_held
from quota_ops.stages.intent import Keys, intend, is_as_planned, withdraw
from quota_ops.stages.outcomes import SETTLED, all_of, interrupted, listed
from quota_ops.stages.overtaken import why_overtaken
from quota_ops.stages.settle import sent
from quota_ops.stages.standstill import refuse_at_standstill
from quota_ops.stages.stored import Stored

PAUSE = 30.0
"""Seconds between two answers after which ledger and cluster are looked at again."""


def run(
    folder: RunFolder,
    cluster: Cluster,
    ledger_folder: Path,
    *,
    holds_folder: Path,
    approved: str,
    progress: Progress = SILENT,
) -> tuple[Outcome, ...]:
    """Write what the approved plan says; leave an outcome file per batch, then applied.json.

    `approved` is the digest as the approver names it. Called again after a crash, it goes on:
    what the cluster already holds is not sent again. What somebody holds at the moment of writing
    is left alone, though the plan has it. Raises Refused when the digest does not match, a guard
    was not let pass, the cluster is paused or frozen by now, another commit was applied meanwhile,
    the ledger is gone, or any entity did not end as planned; ClusterTrouble when the cluster was
    lost; KeyboardInterrupt when a person stops it, after applied.json is left if anything was sent.
    """
    plan, batches = approved_plan(folder, approved)
    _refuse_if_overtaken(folder, ledger_folder)
    if plan.writes:
        refuse_at_standstill(plan.policy)
    stored = cluster.stored()
    noted = intend(folder, plan, stored, ledger_folder)
    done: list[Outcome] = []
    try:
        trouble = _send_all(
            folder,
            cluster,
            batches,
            stored,
            progress,
            done=done,
            ledger_folder=ledger_folder,
            holds_folder=holds_folder,
        )
        _end(folder, done, noted, ledger_folder)
    except KeyboardInterrupt:
        for number, batch in groupby(interrupted(batches, done), key=lambda one: one.batch):
            done += _keep(folder, number, tuple(batch))
        _end(folder, done, noted, ledger_folder)
        raise
    _raise_unless_done(done, trouble)
    return tuple(done)


def _end(folder: RunFolder, outcomes: Sequence[Outcome], noted: Keys, ledger_folder: Path) -> None:
    withdraw(folder, outcomes, noted, ledger_folder)
    folder.leave_outcomes(APPLIED, tuple(outcomes))


def _refuse_if_overtaken(folder: RunFolder, ledger_folder: Path) -> None:
    """Refuse a plan that waited while another commit was applied: it would undo that one."""
    if (why := why_overtaken(folder, ledger_folder)) is not None:
        raise Refused(why, "Nothing was written. Make a new plan.")


def _send_all(
    folder: RunFolder,
    cluster: Cluster,
    batches: Mapping[int, tuple[BatchRow, ...]],
    stored: Stored,
    progress: Progress,
    *,
    done: list[Outcome],
    ledger_folder: Path,
    holds_folder: Path,
) -> QuotaOpsError | None:
    """Add every entity's outcome to those that are done; the trouble that ended the sending."""
    trouble: QuotaOpsError | None = None
    heard = monotonic()
    for number, rows in batches.items():
        if trouble is not None:
            unsent = all_of(number, rows, Status.NOT_SENT, trouble.message)
            done += _recalled(folder, number, unsent)
            continue
        try:
            if monotonic() - heard > PAUSE:
                _refuse_if_overtaken(folder, ledger_folder)
                stored = cluster.stored()
            refuse_at_standstill(folder.policy())
            free, on_hold = without_held(number, rows, stored, holds_folder)
            batch, stored = _send(cluster, number, free, stored)
            batch = (*batch, *on_hold)
        except QuotaOpsError as error:
            trouble = error
            batch = all_of(number, rows, Status.NOT_SENT, error.message)
        batch = _keep(folder, number, batch)
        done += batch
        heard = monotonic()
        progress.applied(number, len(batches), batch)
        if any(one.status is Status.UNKNOWN for one in batch):
            trouble = NoAnswer("an earlier batch was left unknown")
    return trouble


def _keep(folder: RunFolder, number: int, batch: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Leave a batch's outcomes, with what earlier attempts of this run came to."""
    batch = _recalled(folder, number, batch)
    folder.leave_outcomes(batch_file(number), batch)
    return batch


def _recalled(folder: RunFolder, number: int, batch: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    earlier = {(one.entity, one.keys): one for one in folder.outcomes(batch_file(number))}
    return tuple(_after(earlier.get((one.entity, one.keys)), one) for one in batch)


def _send(
    cluster: Cluster, number: int, rows: tuple[BatchRow, ...], stored: Stored
) -> tuple[tuple[Outcome, ...], Stored]:
    """Send what the cluster does not hold yet; the outcomes, and what it stored when last asked."""
    already, stale, to_send = [], [], []
    for row in rows:
        now = stored.get((row.entity, row.key))
        if now == row.after:
            already.append(row)
        elif is_as_planned(row.before, row.after, now):
            to_send.append(row)
        else:
            stale.append(row)
    outcomes = (
        *all_of(number, already, Status.ALREADY, None),
        *_stale(number, stale, stored),
    )
    if not to_send:
        return outcomes, stored
    answers, stored = sent(cluster, number, to_send, stored)
    return (*outcomes, *answers), stored


def _stale(number: int, rows: Sequence[BatchRow], stored: Stored) -> Iterator[Outcome]:
    """What becomes of rows that somebody moved since the plan: each with what it holds now."""
    found: dict[str, list[str]] = {}
    for row in rows:
        value = format_limit(row.key, stored.get((row.entity, row.key)))
        found.setdefault(row.entity, []).append(f"{row.key} is {value} by now")
    for one in all_of(number, rows, Status.STALE, None):
        yield one._replace(message=", ".join(found[one.entity]))


def _after(earlier: Outcome | None, now: Outcome) -> Outcome:
    """What is known of an entity after another attempt that did not write it.

    What an earlier attempt of this run wrote was accepted, not there before; what it left unknown
    stays so until the cluster is seen to hold it.
    """
    if earlier is None or now.status not in {Status.ALREADY, Status.NOT_SENT}:
        return now
    if earlier.status is Status.UNKNOWN and now.status is Status.ALREADY:
        return now._replace(status=Status.ACCEPTED, message=SETTLED)
    return earlier if earlier.status in {Status.ACCEPTED, Status.UNKNOWN} else now


def _raise_unless_done(outcomes: Sequence[Outcome], trouble: QuotaOpsError | None) -> None:
    left = [one for one in outcomes if one.status not in MEANT]
    if not left:
        return
    unknown = any(one.status is Status.UNKNOWN for one in left)
    again = "Run again: what arrived is recognised, the rest is sent."
    if trouble is not None and not unknown:
        done = len(outcomes) - len(left)
        raise type(trouble)(f"{done} of {len(outcomes)} entities done: {trouble.message}", again)
    lines = [
        f"{one.entity}  {': '.join(filter(None, (one.status, one.error, one.message)))}"
        for one in left
    ]
    raise Refused(
        f"{len(left):,} of {len(outcomes):,} entities did not end as planned:\n"
        + listed(lines, APPLIED),
        again if unknown else "The others were written. Plan again to see where these stand.",
    )
