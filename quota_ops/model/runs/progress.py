"""The progress of a run, and the entities that other runs are writing."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.verification import BrokerResult


class Progress(Protocol):
    """Receives the progress of a run: after each batch, and after each query of the brokers."""

    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Receive the outcomes of batch number `batch` of `batches`."""

    def report_brokers(self, brokers: Sequence[BrokerResult], seconds_left: float) -> None:
        """Receive each broker's result of the last query, and the seconds until the deadline."""


class _Silent:
    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        pass

    def report_brokers(self, brokers: Sequence[BrokerResult], seconds_left: float) -> None:
        pass


SILENT: Progress = _Silent()
"""A Progress that ignores everything."""


class ConcurrentWrite(NamedTuple):
    """An entity that a run writes; `sure` when its request is in flight."""

    run: str
    entity: str
    sure: bool
