"""Sentences about runs at work: how far they are, and what other runs are writing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.progress import ConcurrentWrite
from quota_ops.model.verification import BrokerAnswer
from quota_ops.report.brokers import broker_words, brokers_words
from quota_ops.report.screen import GAP
from quota_ops.report.wording import shown

Say = Callable[[str, str, int, int], None]
"""Called with a stage, what it has come to, and how many of its steps are done, of how many."""

_SEEN_AS = {Status.ALREADY: Status.ACCEPTED, Status.STALE: Status.REFUSED}


class ProgressText:
    """A Progress that puts what it is told into words and hands them on."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._keys: Counter[Status] = Counter()

    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Say how many keys were accepted, refused or left unknown so far."""
        for outcome in outcomes:
            self._keys[_SEEN_AS.get(outcome.status, outcome.status)] += len(outcome.keys)
        told = (Status.ACCEPTED, Status.REFUSED, Status.UNKNOWN)
        numbers = (f"{status} {self._keys[status]:,}" for status in told)
        self._say("apply", GAP.join((f"batch {batch} of {batches}", *numbers)), batch, batches)

    def report_brokers(self, brokers: Sequence[BrokerAnswer], seconds_left: float) -> None:
        """Say how many brokers agree, what the others answered, and how long they still have."""
        agree = sum(broker.agrees for broker in brokers)
        words = [brokers_words(brokers)]
        words += [shown(broker_words(broker)) for broker in brokers if not broker.agrees]
        if agree < len(brokers):
            words.append(f"{int(seconds_left) // 60:02}:{int(seconds_left) % 60:02} left")
        self._say("verify", GAP.join(words), agree, len(brokers))


def concurrent_words(writes: Iterable[ConcurrentWrite]) -> Iterator[str]:
    """Yield a sentence for each run: what it is writing, and when to look again."""
    entities: dict[str, dict[str, bool]] = {}
    for one in writes:
        entities.setdefault(one.run, {})[one.entity] = one.sure
    for run, sure in entities.items():
        first, *others = sure
        verb = "is writing" if all(sure.values()) else "may be writing"
        whom = shown(first) + (f" and {len(others):,} more" if others else "")
        look = f"look again when it has ended (quota-ops show {run})"
        yield f"run {run} {verb} {whom} at this moment: {look}"
