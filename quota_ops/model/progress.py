"""Who is told how long work goes on: the seam between stages and the terminal."""

from collections.abc import Sequence
from typing import Protocol

from quota_ops.model.outcome import Outcome
from quota_ops.model.verification import BrokerAnswer


class Progress(Protocol):
    """Told after each batch and after each round of asking the brokers."""

    def applied(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        """Be told that batch number `batch` of `batches` was answered so."""

    def asked(self, brokers: Sequence[BrokerAnswer], seconds_left: float) -> None:
        """Be told what the brokers said in the last round, and the seconds until the deadline."""


class _Silent:
    def applied(self, batch: int, batches: int, outcomes: Sequence[Outcome]) -> None:
        pass

    def asked(self, brokers: Sequence[BrokerAnswer], seconds_left: float) -> None:
        pass


SILENT: Progress = _Silent()
"""Tells nobody."""
