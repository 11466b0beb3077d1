"""The errors that a user can see; the class decides the exit code."""

import errno
import os
from collections.abc import Iterator, Sequence
from typing import ClassVar

from quota_ops.model.finding import Finding, Problem


class QuotaOpsError(Exception):
    """An error with a message for people and, if there is one, a remedy.

    The message ends with `effect`, what the failed request did to the cluster: "Nothing was sent."
    A run that has written before leaves that out, by `reason`.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, remedy: str | None = None, *, effect: str = "") -> None:
        self.reason = message
        self.message = f"{message} {effect}" if effect else message
        self.remedy = remedy
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  {self.remedy}"


class CannotJudge(QuotaOpsError):
    """A comparison could not be made, because an input is missing, invalid or partial."""

    exit_code = 6


class UseUnknown(CannotJudge):
    """Prometheus did not respond or rejected a query, so what clients use is unknown."""


class Refused(QuotaOpsError):
    """A guard, a broker or a person refused, verify saw a difference, or an outcome is unknown."""


class Claimed(Refused):
    """Another process applies the run; this one neither writes nor records anything."""


class GuardsRefused(Refused):
    """Guards block the plan, and are not overridden."""


class InvalidInput(QuotaOpsError):
    """A file, an option or the environment is invalid."""

    exit_code = 2


class Denied(InvalidInput):
    """This process lacks a permission in a store."""


class MissingTool(InvalidInput):
    """A program that this command needs is not installed."""


class GitFailed(InvalidInput):
    """Git fails, is not installed or takes too long, so the commit is unknown."""


class ClusterTrouble(QuotaOpsError):
    """A request to the cluster failed."""

    exit_code = 3


class Unreachable(ClusterTrouble):
    """No broker responded in time; trying again later may help."""


class LoginFailed(ClusterTrouble):
    """The broker refused the credentials, or the TLS handshake failed."""


class NotAuthorized(ClusterTrouble):
    """Authentication succeeded, but a permission that the call needs is missing."""


class WrongCluster(ClusterTrouble):
    """The addresses belong to a different cluster than the one in cluster.yaml."""


class NoResponse(ClusterTrouble):
    """A request was sent and no response arrived in time, so its outcome is unknown."""


_MEMORY = (
    "this machine has too little free memory for the command",
    "Free memory, use a machine with more, or raise the limit: see ulimit -v.",
)
_FILES = ("this process cannot open more files", "Raise the limit: see ulimit -n.")
_THREADS = (
    "this process cannot start more threads",
    "Raise the limits of memory and processes: see ulimit -v and ulimit -u.",
)

_LIMITS = {
    os.strerror(errno.EMFILE): _FILES,
    os.strerror(errno.ENFILE): _FILES,
    os.strerror(errno.ENOMEM): _MEMORY,
    "Out of Memory Error": _MEMORY,
    "failed to map segment": _MEMORY,
    "can't start new thread": _THREADS,
}
"""The limits of a machine, by error text of the system, DuckDB, the library loader or Python."""


def _limit_words(error: BaseException) -> tuple[str, str] | None:
    """Return the limit of this machine that an error is about, and the remedy; None if none is."""
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, QuotaOpsError):  # its text may quote input
        return None
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        text += os.strerror(error.errno)
    return next((limit for words, limit in _LIMITS.items() if words in text), None)


def find_limit(error: BaseException) -> BaseException | None:
    """Return the first error about a limit of this machine among an error and its causes."""
    return next(filter(_limit_words, _chain(error)), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # an error may be its own cause's cause
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


class Unexpected(QuotaOpsError):
    """An unexpected error: a defect of quota-ops, or a limit of this machine."""

    exit_code = 5

    def __init__(self, error: BaseException) -> None:
        match error:
            case _ if limit := _limit_words(error):
                what, remedy = limit
            case OSError(strerror=str(why), filename=str(place)):
                what = f"{place}: {why}"
                remedy = (
                    "If you cannot fix this, report it with the traceback that --verbose shows."
                )
            case _:
                what = f"unexpected error: {type(error).__name__}: {error}"
                remedy = "Please report it with the traceback that --verbose shows."
        super().__init__(what, f"{remedy}\n  To see what a run has written so far: quota-ops runs")


class InvalidDesiredState(InvalidInput):
    """The desired state of a cluster has problems.

    `problems` lists them, `unlisted` counts those that are not listed, and `files_with_problems`
    counts the files that have either. `findings` come from the readable files.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        files: int,
        quotas: int,
        findings: Sequence[Finding] = (),
        unlisted: int = 0,
        files_with_problems: int = 0,
    ) -> None:
        self.problems = tuple(
            sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column))
        )
        self.findings = tuple(findings)
        self.files_with_problems = max(
            files_with_problems, len({problem.file for problem in problems})
        )
        self.files = max(files, self.files_with_problems)
        self.quotas = quotas
        self.unlisted = unlisted
        more = [f"{unlisted:,} more are not listed"] if unlisted else []
        super().__init__("\n".join([*map(str, self.problems), *more]))

    def adding(self, problems: Sequence[Problem]) -> "InvalidDesiredState":
        """Return the same error with further problems, which concern whole files."""
        new = len(
            {problem.file for problem in problems} - {problem.file for problem in self.problems}
        )
        return InvalidDesiredState(
            (*self.problems, *problems),
            files=self.files + new,
            quotas=self.quotas,
            findings=self.findings,
            unlisted=self.unlisted,
            files_with_problems=self.files_with_problems + new,
        )


def describe_damage(error: Exception) -> str:
    """Return what is wrong with the values of a file, by the error of the code that parses them."""
    if isinstance(error, KeyError):
        return f"the field {error} is missing"
    if isinstance(error, ValueError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "its values do not have the expected form"
