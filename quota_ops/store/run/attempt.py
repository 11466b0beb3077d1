"""One attempt of apply: the outcomes of each batch, recorded before and after its request."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from quota_ops.model.errors import InvalidInput, QuotaOpsError, Refused
from quota_ops.model.quotas.difference import Batches
from quota_ops.model.runs.outcome import SETTLED, Outcome, Status, build_outcomes
from quota_ops.model.text import counted
from quota_ops.store.places.place import Place
from quota_ops.store.run.files import ABOUT, APPLIED, BATCH
from quota_ops.store.run.folder import RunFolder


class Attempt(Struct):
    """The outcomes of one attempt, batch by batch, and those of earlier attempts.

    A batch is recorded as unknown before it is sent. However the process ends, the run's folder
    shows which rows were accepted, which may have been, and which were not sent.
    """

    folder: RunFolder
    done: list[Outcome] = []
    _noted: tuple[Outcome, ...] = ()
    _earlier: tuple[Outcome, ...] = ()

    def begin(self, number: int) -> None:
        """Read the outcomes that earlier attempts recorded of a batch."""
        self._noted = ()
        self._earlier = self.folder.outcomes(BATCH.of(number))

    def require_folder(self) -> None:
        """Raise InvalidInput if the run's folder was removed: a write would create a second one."""
        if not self.folder.has(ABOUT):
            raise InvalidInput(f"{self.folder.place} no longer exists")

    def note(self, number: int, batch: Iterable[Outcome]) -> None:
        """Record a batch's outcomes, as far as they are known, before it is sent.

        Raises InvalidInput like `require_folder`.
        """
        self.require_folder()
        self._noted = tuple(merge_earlier(batch, self._earlier))
        self.folder.leave_outcomes(BATCH.of(number), self._noted)

    def keep(self, number: int, batch: Iterable[Outcome]) -> tuple[Outcome, ...]:
        """Record a batch's outcomes, and return them combined with those of earlier attempts.

        Raises Claimed, and records nothing, if another process has taken over the run.
        """
        self.folder.require_claim()
        known = tuple(merge_earlier(batch, self._earlier))
        self.done += known
        self.folder.leave_outcomes(BATCH.of(number), known)
        return known

    def record_store_error(self, batches: Batches, error: InvalidInput) -> QuotaOpsError:
        """Record the outcomes again after the store failed; return an error with what was sent.

        The store may work again by now. If it does not, the intents are in the ledger, so that the
        next run finds out what arrived. Returns `error` itself if nothing was sent.
        """
        place = self.folder.place
        with suppress(InvalidInput):
            if self.folder.has(ABOUT):
                self.stop(batches, error.message)
                self.folder.leave_outcomes(APPLIED, tuple(self.done))
            else:
                why = f"the folder of this run, {place}, was moved or deleted while it wrote"
                error = InvalidInput(why, error.remedy)
        return state_sent(error, self.done, place)

    def stop(self, batches: Batches, why: str = "interrupted") -> None:
        """Record the outcomes of the batches that a signal or an error interrupted or prevented."""
        recorded = {outcome.batch for outcome in self.done}
        for number, rows in batches.items():
            if number not in recorded:
                noted = [outcome for outcome in self._noted if outcome.batch == number]
                if not noted:
                    self.begin(number)
                left = noted or build_outcomes(number, rows, Status.NOT_SENT, None)
                open_ends = {Status.UNKNOWN, Status.NOT_SENT}
                self.keep(
                    number,
                    (
                        outcome._replace(message=why) if outcome.status in open_ends else outcome
                        for outcome in left
                    ),
                )


def state_sent(error: InvalidInput, outcomes: Iterable[Outcome], run: Place) -> QuotaOpsError:
    """Return an error of the store with what the run had already sent; `error` if nothing."""
    sent = Counter[str]()
    for outcome in outcomes:
        sent[outcome.status.value] += len(outcome.keys) if outcome.status in _SENT else 0
    words = ", ".join(f"{counted(keys, 'key')} {word}" for word, keys in sent.items() if keys)
    if not words:
        return error
    remedy = "" if error.remedy is None else f"{error.remedy} "
    return Refused(
        f"{error.message}. Sent before that: {words}",
        f"{remedy}The next run finds out what arrived. This run is {run.parent.name}/{run.name}.",
    )


def merge_earlier(batch: Iterable[Outcome], earlier: Iterable[Outcome]) -> Iterator[Outcome]:
    """Combine a batch's outcomes with what earlier attempts of the run did to the same rows."""
    before = {row: outcome for outcome in earlier for row in outcome.rows}
    if not before:
        yield from batch
        return
    for outcome in batch:
        keys: dict[Outcome, list[str]] = {}
        for row in outcome.rows:
            known = _after(before.get(row), outcome)
            keys.setdefault(known._replace(keys=()), []).append(row.key)
        for known, names in keys.items():
            yield known._replace(keys=tuple(names))


def _after(earlier: Outcome | None, now: Outcome) -> Outcome:
    """Return the outcome of a row after another attempt.

    A row that an earlier attempt of this run wrote is accepted, not already stored. One that it
    left unknown stays unknown until the cluster is seen to store it. A request of an earlier
    attempt that may still arrive stays one.
    """
    if earlier is None:
        return now
    may_arrive = earlier.may_arrive or now.may_arrive
    return _combine(earlier, now)._replace(may_arrive=may_arrive)


def _combine(earlier: Outcome, now: Outcome) -> Outcome:
    if now.status is Status.ACCEPTED:
        return now
    wrote = earlier.status if earlier.status in _SENT else earlier.earlier
    if wrote is None:
        return now
    if now.status is Status.ALREADY:
        if earlier.status is Status.ACCEPTED:
            return earlier._replace(earlier=wrote)
        return now._replace(status=Status.ACCEPTED, message=SETTLED, earlier=wrote)
    if now.status is Status.NOT_SENT and earlier.status is wrote:
        return earlier._replace(earlier=wrote)
    return now._replace(earlier=wrote)


_SENT = frozenset({Status.ACCEPTED, Status.UNKNOWN})
