"""A finding's code and everything that is shown about it; `codes` is the table of all of them."""

from enum import StrEnum
from typing import NamedTuple

IDLE_SILENCE = "QO100"
"""The code of a silence without a finding, which cannot be silenced itself."""


class Severity(StrEnum):
    """How serious a finding is."""

    WARNING = "warning"
    """A limit does not do what its reader expects."""
    NOTICE = "notice"
    """A limit works, but misleads."""


class DecidedBy(StrEnum):
    """The input that a finding depends on."""

    FILES = "the files"
    TIME = "the files and the time"
    BROKERS = "a plan, from what the brokers report about themselves"


class Code(NamedTuple):
    """A finding: its title, meaning and consequence, a file that triggers it, and a remedy."""

    code: str
    severity: Severity
    decided_by: DecidedBy
    title: str
    means: str
    hurts: str
    example: str
    remedy: str

    @property
    def silenceable(self) -> bool:
        """Whether an entry of `silence` may name it."""
        return self.code != IDLE_SILENCE
