"""apply: describe again, record the intents, send each batch, write each entity's outcome."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.desired.pauses import refuse_while_paused
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import InvalidInput, QuotaOpsError, Refused
from quota_ops.model.moment import iso_utc, uptime
from quota_ops.model.plans.approval import resume_command
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.difference import Action, Difference
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import Key, Keys, LostLimit, Stored
from quota_ops.model.runs.outcome import (
    AS_INTENDED,
    DONE,
    EntityResponse,
    Outcome,
    Status,
    build_outcomes,
    format_outcomes,
)
from quota_ops.model.runs.progress import SILENT, Progress
from quota_ops.model.text import command, counted
from quota_ops.stages.apply.approved_plan import load_plan, refuse_unless_decided
from quota_ops.stages.apply.intent import (
    is_as_planned,
    record_intents,
    watch_releases,
    withdraw_intents,
)
from quota_ops.stages.apply.requests import OLDEST, refuse_old, send_noted, write_batches
from quota_ops.stages.describe.rates import watch_brokers
from quota_ops.stages.succession import record_claim, refuse_if_overtaken
from quota_ops.store.ledger.decisions import record_use
from quota_ops.store.ledger.holds import held_among
from quota_ops.store.run.attempt import Attempt, merge_earlier
from quota_ops.store.run.files import APPLIED, DESCRIBED
from quota_ops.store.run.folder import RunFolder


def compute_max_age(took: float) -> float:
    """Return how many seconds a description of the cluster stays valid; it took `took` seconds.

    One second, or ten times `took`, so that describing takes at most a tenth of the time; but no
    longer than half of what `refuse_old` allows.
    """
    return min(max(1.0, 10 * took), OLDEST / 2)


def apply_plan(
    folder: RunFolder, cluster: Cluster, *, approved: str | None, progress: Progress = SILENT
) -> tuple[Outcome, ...]:
    """Write the approved plan to the cluster, an outcome file per batch, and then applied.json.

    `approved` is the digest as the approver typed it. None writes only the repairs of a plan that
    guards block, and uses no decision: all other rows wait, for a call in the same run once the
    plan is approved. Called again after a crash, it resumes: values that the cluster already stores
    are not sent again. Rows that are held at the moment of writing, were released since the plan,
    or whose temporary value has ended, are not written.
    Raises Refused when the digest does not match, a guard was not overridden, the cluster is now
    paused or frozen, another commit was applied meanwhile, a later run has begun to write, the
    ledger is missing, or any entity did not end as planned; ClusterTrouble when the cluster became
    unreachable. Any other exception, for example KeyboardInterrupt, is raised after applied.json
    is written.
    """
    # Why here: nothing in the folder counts before it is known to be the plan that was approved.
    plan, batches = load_plan(folder, approved)
    # Why here: it reads only the run store, so a run that is too late sends no request at all.
    refuse_if_overtaken(folder)
    # Why here: the last check that leaves no trace; a pause may have begun since the plan.
    if plan.writes:
        refuse_while_paused(plan.policy)
    find_moved = watch_brokers(folder, cluster, plan)
    # Why here: a cluster that cannot be described must not use up the approval.
    lost = folder.read(DESCRIBED).lost
    described = _describe(cluster, find_moved, lost)
    # Why here: before anything that another run could see, so that no two runs use one approval.
    if approved is not None:
        refuse_unless_decided(folder, plan, record_use(folder, plan))
    # Why here: an earlier run looks for claims before each request, and the ledger does not change
    # if there is nothing to write. So it learns of this run before this run writes.
    record_claim(folder)
    part, waiting = plan, set[Key]()
    if approved is None:
        part = replace(plan, differences=plan.repairs)
        waiting = {row.id for row in plan.writes} - {row.id for row in part.writes}
    # Why here: before the first request. If this process dies, the ledger has what may arrive.
    noted = record_intents(folder, part, described.stored, lost)
    attempt = Attempt(folder)
    writer = _Writer(
        attempt,
        cluster,
        policy=plan.policy,
        find_released=watch_releases(folder, part, noted),
        find_moved=find_moved,
        waiting=waiting,
        lost=lost,
        described=described,
    )

    def record() -> None:
        # Why first: rows that were certainly not written have no intent once applied.json is there.
        withdraw_intents(folder, attempt.done)
        folder.leave_outcomes(APPLIED, tuple(attempt.done))

    trouble = write_batches(attempt, batches, writer.write, record, progress)
    again = resume_command(str(folder.place), plan)
    raise_unless_done(
        attempt.done,
        trouble,
        f"Run again: it recognizes the writes that arrived and sends the rest: {again}",
        remedy=f"{_describe_others(attempt.done)}Plan again to see their status: "
        f"{command('plan', plan.policy.cluster)}",
    )
    return tuple(attempt.done)


class _Described(NamedTuple):
    """The values that the cluster stored; stale from `stale_at` on, by `uptime`.

    `moved` has the rows that other brokers share now than in the plan, with the reason.
    """

    stored: Stored
    stale_at: float
    moved: Mapping[Key, str]


def _describe(
    cluster: Cluster, find_moved: Callable[[], Mapping[Key, str]], lost: Sequence[LostLimit]
) -> _Described:
    """Describe what applies: no lost limit, unless somebody has changed it since."""
    began, stored, moved = uptime(), cluster.describe_values(), find_moved()
    for row in lost:
        if same(stored.get(row.id), row.value):
            del stored[row.id]
    return _Described(stored, began + compute_max_age(uptime() - began), moved)


_Reason = tuple[Status, str | None]
"""Why a row is not sent, as the status and message of its outcome."""


class _Writer(Struct):
    """Writes the rows of a plan's batch that may be written now."""

    attempt: Attempt
    cluster: Cluster
    policy: Policy
    find_released: Callable[[], Keys]
    """Returns the released rows, or raises Refused when a later run has overtaken this one."""
    find_moved: Callable[[], Mapping[Key, str]]
    waiting: Keys
    """The rows that a guard holds back."""
    lost: Sequence[LostLimit]
    """The limits that brokers store and do not apply, when the plan was made."""
    described: _Described

    def write(self, number: int, rows: Sequence[Difference]) -> tuple[Outcome, ...]:
        """Write a batch, and return the outcome of each row."""
        released = self.find_released()
        if uptime() > self.described.stale_at:
            self.described = _describe(self.cluster, self.find_moved, self.lost)
        refuse_while_paused(self.policy)
        stored = self.described.stored
        to_send, kept = list[Difference](), dict[_Reason, list[Difference]]()
        reasons = self._find_reasons(rows, released)
        for row in rows:
            reason = reasons.get(row.id)
            (to_send if reason is None else kept.setdefault(reason, [])).append(row)
        others = tuple(
            _with_values(outcome, stored)
            for (status, message), some in kept.items()
            for outcome in build_outcomes(number, some, status, message)
        )
        cleared = self._clear_lost(number, to_send, others)
        failed = tuple(outcome for outcome in cleared if outcome.status is not Status.ACCEPTED)
        if failed:
            left = {row for outcome in failed for row in outcome.rows}
            others, to_send = (*others, *failed), [row for row in to_send if row.id not in left]
        if not to_send:
            return others
        sent, stored = send_noted(
            self.attempt, self.cluster, number, to_send, stored, send=self._send, others=others
        )
        self.described = self.described._replace(stored=stored)
        return (*others, *merge_earlier(sent, cleared))

    def _find_reasons(self, rows: Sequence[Difference], released: Keys) -> dict[Key, _Reason]:
        """Return why rows are not sent now; of several reasons, the last one below counts."""
        (stored, _, moved), now = self.described, iso_utc()
        planned = {row.id: row for row in rows}
        already = {key for key, row in planned.items() if same(stored.get(key), row.target)}
        not_skipped = planned.keys() - already - self.waiting
        holds = self.attempt.folder.records.holds
        on_hold = held_among({key.entity for key in not_skipped}, holds)
        stale = (
            key
            for key, row in planned.items()
            if not is_as_planned(row.before, row.target, stored.get(key))
        )
        over = {
            row.id: f"Git declares another value since {row.until}"
            for row in rows
            if row.until is not None and row.until <= now
        }
        held = {key: on_hold[key.entity].text for key in planned if key.entity in on_hold}
        return {
            **dict.fromkeys(stale, (Status.STALE, None)),
            **dict.fromkeys(released, (Status.STALE, "released since the plan was made")),
            **dict.fromkeys(already, (Status.ALREADY, None)),
            **{row: (Status.STALE, why) for row, why in {**moved, **over}.items()},
            **{row: (Status.HELD, hold) for row, hold in held.items()},
            **dict.fromkeys(self.waiting, (Status.WAITING, None)),
        }

    def _send(self, alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        self.find_released()
        refuse_old(self.cluster)
        return self.cluster.apply(alterations)

    def _clear_lost(
        self, number: int, rows: Sequence[Difference], others: Sequence[Outcome]
    ) -> tuple[Outcome, ...]:
        """Clear the lost limits among some rows: the controller sets no value that is stored."""
        lost = {row.id for row in self.lost}
        if not lost or lost.isdisjoint(row.id for row in rows):
            return ()
        clears = [row._replace(action=Action.CLEAR) for row in rows if row.id in lost]
        rest = build_outcomes(
            number, (row for row in rows if row.id not in lost), Status.NOT_SENT, None
        )
        stored = {**self.described.stored, **{row.id: row.value for row in self.lost}}
        cleared, _ = send_noted(
            *(self.attempt, self.cluster, number, clears, stored),
            send=self._send,
            others=(*others, *rest),
        )
        return cleared


def _with_values(outcome: Outcome, stored: Stored) -> Outcome:
    """Return an outcome; of rows that changed since the plan, with the values they have now."""
    if outcome.status is not Status.STALE or outcome.message is not None:
        return outcome
    values = ((row[1], stored.get(row)) for row in outcome.rows)
    now = ", ".join(f"{key} is now {format_limit(key, value)}" for key, value in values)
    return outcome._replace(message=now)


def raise_unless_done(
    outcomes: Sequence[Outcome], trouble: QuotaOpsError | None, retry: str, *, remedy: str
) -> None:
    """Raise why entities did not end as planned, if some did not; `trouble` stopped the run.

    `retry` is the remedy if the run did not send all rows or an outcome is unknown, and `remedy` if
    all have a response.
    """
    if not (failed := [outcome for outcome in outcomes if outcome.status not in AS_INTENDED]):
        return
    total = counted(len(outcomes), "entity")
    unknown = any(outcome.status is Status.UNKNOWN for outcome in failed)
    if trouble is not None and not unknown:
        done = sum(outcome.status in DONE for outcome in outcomes)
        kind = Refused if done and isinstance(trouble, InvalidInput) else type(trouble)
        why = trouble.reason if done else trouble.message
        raise kind(f"{done:,} of {total} done: {why}", retry)
    raise Refused(
        f"{len(failed):,} of {total} did not end as planned:\n" + format_outcomes(failed, APPLIED),
        retry if unknown else remedy,
    )


def _describe_others(outcomes: Sequence[Outcome]) -> str:
    """Describe the entities that ended as planned, if any did, and what stale ones need."""
    ended = {outcome.status for outcome in outcomes}
    held = " or are held" if Status.HELD in ended else ""
    others = f"The others were written{held}. " if ended & DONE else ""
    stale = "This run leaves stale rows alone; a new one is needed. "
    return f"{others}{stale if Status.STALE in ended else ''}"
