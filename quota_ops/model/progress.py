"""What runs at work are doing: their progress, and the entities that they write."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quota_ops.model.outcome import Outcome
from quota_ops.model.verification import BrokerAnswer


class Progress(Protocol):
    """Told after each batch and after each round of asking the brokers."""

    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Be told that batch number `batch` of `batches` was answered so."""

    def report_brokers(self, brokers: Sequence[BrokerAnswer], seconds_left: float) -> None:
        """Be told what the brokers said in the last round, and the seconds until the deadline."""


class _Silent:
    def report_batch(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        pass

    def report_brokers(self, brokers: Sequence[BrokerAnswer], seconds_left: float) -> None:
        pass


SILENT: Progress = _Silent()
"""Tells nobody."""


class ConcurrentWrite(NamedTuple):
    """An entity that a run writes; `sure` where its process lives and its request is on the way."""

    run: str
    entity: str
    sure: bool
