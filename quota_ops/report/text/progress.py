"""The progress of a run, and the writes of concurrent runs, as text."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.progress import ConcurrentWrite
from quota_ops.model.runs.verification import BrokerResult
from quota_ops.model.text import command, name_first
from quota_ops.report.outline.brokers import describe_broker, describe_brokers
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import GAP

ShowStage = Callable[[str, str, int, int], None]
"""Called with a stage, its text, the number of its finished steps, and of all steps."""

_SEEN_AS = {Status.ALREADY: Status.ACCEPTED, Status.STALE: Status.REFUSED}


class ProgressText:
    """A Progress that formats each event as text and passes it to `show_stage`."""

    def __init__(self, show_stage: ShowStage) -> None:
        self._show_stage = show_stage
        self._keys: Counter[Status] = Counter()

    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Show the number of keys that are accepted, refused or unknown so far."""
        for outcome in outcomes:
            self._keys[_SEEN_AS.get(outcome.status, outcome.status)] += len(outcome.keys)
        counted = (Status.ACCEPTED, Status.REFUSED, Status.UNKNOWN)
        numbers = (f"{status} {self._keys[status]:,}" for status in counted)
        self._show_stage(
            "apply", GAP.join((f"batch {batch} of {batches}", *numbers)), batch, batches
        )

    def report_brokers(self, brokers: Sequence[BrokerResult], seconds_left: float) -> None:
        """Show how many brokers agree, the results of the others, and the seconds that are left."""
        agree = sum(broker.agrees for broker in brokers)
        words = [describe_brokers(brokers)]
        words += [escape_text(describe_broker(broker)) for broker in brokers if not broker.agrees]
        if agree < len(brokers):
            words.append(f"{int(seconds_left) // 60:02}:{int(seconds_left) % 60:02} left")
        self._show_stage("verify", GAP.join(words), agree, len(brokers))


def describe_concurrent_writes(writes: Iterable[ConcurrentWrite]) -> Iterator[str]:
    """Yield a sentence for each run: what it is writing, and when to look again."""
    entities: dict[str, dict[str, bool]] = {}
    for write in writes:
        entities.setdefault(write.run, {})[write.entity] = write.sure
    for run, sure in entities.items():
        verb = "is writing" if all(sure.values()) else "may be writing"
        whom = name_first(sure, quoted=escape_text)
        look = f"look again when it has ended ({command('show', run)})"
        yield f"run {run} {verb} {whom} at this moment: {look}"
