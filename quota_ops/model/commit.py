"""The commit of a run's files: how a run finds it, and how screens show it."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct

MOST_UNCOMMITTED = 20
"""The maximum number of uncommitted files to list, because Git hashes each of them."""

_ROLLBACK = "rollback of "


class CommitSource(StrEnum):
    """How a run knows its commit."""

    COMPARED = "compared"
    """Every byte that was read is in the commit."""
    GIVEN = "given"
    """A person or a job passed it; nothing was compared."""
    AIRFLOW = "airflow"
    """The version of the DAG bundle, as Airflow states it; nothing was compared."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The commit of the files that a run read, or why it is unknown.

    `uncommitted` are the first files, up to MOST_UNCOMMITTED, that differ from the checked-out
    commit `base`; `failure` is the error of Git. All are empty outside Git.
    """

    commit: str | None = None
    source: CommitSource | None = None
    uncommitted: tuple[str, ...] = ()
    base: str | None = None
    failure: str | None = None
    author: str | None = field(default=None, compare=False)
    """The author of the commit, `Anna <anna@example.com>`; None if Git does not know the commit.

    It follows from the commit, so it does not count in comparisons.
    """

    @classmethod
    def given(cls, commit: str | None) -> Self:
        """Return the provenance of a commit that was passed, or an empty one without a commit."""
        return cls(commit, None if commit is None else CommitSource.GIVEN)


class Commit(NamedTuple):
    """A commit: its id, its author `Anna <anna@example.com>`, and the first line of its message."""

    id: str
    author: str
    subject: str


MOST_COMMITS = 20
"""The maximum number of commits that a run lists."""


class Changes(Struct, frozen=True):
    """The commits that changed the files of a cluster since the last applied commit, newest first.

    `total` counts them all, `commits` has the first MOST_COMMITS. If `since` is None, no commit was
    applied before, and all count. `failure` is why Git could not list them.
    """

    since: str | None = None
    commits: tuple[Commit, ...] = ()
    total: int = 0
    failure: str | None = None
    lacks: str | None = None
    """The commit that was applied last, if the commit that is checked out does not contain it."""
    checked_out: str | None = None
    """The commit that lacks it, if the run records another one, which a person passed."""
    uncompared: str | None = None
    """That commit, if it is unknown whether that one contains it: in a shallow clone."""
    has_own: bool = True
    """Whether the repository has the commit that a person passed; if not, none is compared with it.
    """


def rollback_of(run: str) -> str:
    """Return the text that replaces a commit for a run that rolls back another."""
    return f"{_ROLLBACK}{run}"


def is_git(commit: str) -> bool:
    """Return whether the text is a commit rather than a rollback."""
    return not commit.startswith(_ROLLBACK)


def short(commit: str) -> str:
    """Return the first seven characters of a commit, as Git does; the whole name of a rollback."""
    return commit[:7] if is_git(commit) else commit


def named(commit: str) -> str:
    """Return `commit a1b2c3d`, or the name of a rollback."""
    return f"commit {short(commit)}" if is_git(commit) else commit
