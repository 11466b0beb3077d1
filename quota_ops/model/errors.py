"""Every error a person can meet; the class decides the exit code.

QuotaOpsError
├── Refused            1  a guard, a broker or a person said no, or an outcome is unknown
│   └── GuardsRefused  1  guards need a person's approval, and nobody let them pass
├── InvalidInput       2  a file, an option or the environment is not as it must be
│   ├── InvalidDesiredState 2  the YAML has problems; carries them all
│   └── MissingTool    2  a program that this command needs is not installed
└── ClusterTrouble     3  the cluster could not do what was asked
    ├── Unreachable    3  no answer: worth another try
    ├── LoginFailed    3  the broker refused the credentials, or TLS could not be agreed
    ├── NotAuthorized  3  the login holds, a permission is missing
    ├── NoAnswer       3  a request was sent, what became of it is unknown
    └── WrongCluster   3  another cluster answered
"""

from collections.abc import Sequence
from typing import ClassVar

from quota_ops.model.finding import Finding
from quota_ops.model.problem import Problem


class QuotaOpsError(Exception):
    """An error with a message for people and, where there is one, a remedy."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  {self.remedy}"


class Refused(QuotaOpsError):
    """A guard, a broker or a person refused, or an outcome is unknown."""

    exit_code = 1


class GuardsRefused(Refused):
    """Guards need a person's approval, and nobody let them pass."""


class InvalidInput(QuotaOpsError):
    """A file, an option or the environment is not as it must be."""

    exit_code = 2


class MissingTool(InvalidInput):
    """A program that this command needs is not installed."""


class ClusterTrouble(QuotaOpsError):
    """The cluster could not do what was asked."""

    exit_code = 3


class Unreachable(ClusterTrouble):
    """No broker answered in time; trying again later may help."""


class LoginFailed(ClusterTrouble):
    """The broker refused the credentials, or the two sides could not agree on TLS."""


class NotAuthorized(ClusterTrouble):
    """The login holds, but a permission that the call needs is missing."""


class WrongCluster(ClusterTrouble):
    """Another cluster than the one in cluster.yaml answered."""


class NoAnswer(ClusterTrouble):
    """A request was sent and no answer came in time: what became of it is unknown."""


class InvalidDesiredState(InvalidInput):
    """The desired state of a cluster has problems; all of them are in `problems`.

    `findings` are those of what could be read.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        files: int,
        quotas: int,
        findings: Sequence[Finding] = (),
    ) -> None:
        self.problems = tuple(sorted(problems, key=lambda one: (one.file, one.line, one.column)))
        self.findings = tuple(findings)
        self.files = files
        self.quotas = quotas
        super().__init__("\n".join(str(problem) for problem in self.problems))
