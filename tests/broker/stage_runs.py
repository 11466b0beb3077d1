"""Outcomes of entities, and actions in the middle of a run, for the tests of stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.run import Outcomes
from quota_ops.model.runs.verification import BrokerResult
from quota_ops.store.run.files import APPLIED, RunFile
from quota_ops.store.run.folder import RunFolder

KEY = "producer_byte_rate"
TEN: dict[str, dict[str, float | None]] = {
    f"user=u{number}": {KEY: 100.0 + number} for number in range(10)
}


def outcomes(folder: RunFolder, file: RunFile[Outcomes] = APPLIED) -> dict[str, Status]:
    """Return the outcome of each entity."""
    return {outcome.entity: outcome.status for outcome in folder.outcomes(file)}


@dataclass
class After:
    """A Progress that calls a function after a batch."""

    batch: int
    act: Callable[[], object]
    batches: list[int] = field(default_factory=list)

    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Call the function after that batch."""
        self.batches.append(len(outcomes))
        assert batches >= batch
        if batch == self.batch:
            self.act()

    def report_brokers(self, brokers: Sequence[BrokerResult], seconds_left: float) -> None:
        """Do nothing while verify queries brokers."""
