"""Which commit the files of a run are of, how that is known, and how screens name it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

MOST_UNCOMMITTED = 20
"""Uncommitted files that are looked for: Git is asked about the bytes of each."""

_ROLLBACK = "rollback of "


class CommitSource(StrEnum):
    """How a run knows its commit."""

    COMPARED = "compared"
    """Every byte that was read is the commit's."""
    GIVEN = "given"
    """A person or a job passed it; nothing was compared."""
    AIRFLOW = "airflow"
    """The version of the DAG bundle, as Airflow states it; nothing was compared."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The commit of what a run read, or why there is none.

    `uncommitted` are the first files, up to MOST_UNCOMMITTED, that differ from the commit `base`,
    which is checked out; `failure` is why Git did not tell. All are empty outside Git.
    """

    commit: str | None = None
    source: CommitSource | None = None
    uncommitted: tuple[str, ...] = ()
    base: str | None = None
    failure: str | None = None

    @classmethod
    def given(cls, commit: str | None) -> Self:
        """That of a commit that was passed; without one nothing is known."""
        return cls(commit, None if commit is None else CommitSource.GIVEN)


def rollback_of(run: str) -> str:
    """What stands in a commit's place for a run that rolls back another."""
    return f"{_ROLLBACK}{run}"


def is_git(commit: str) -> bool:
    """Whether it is a commit, and no rollback in its place."""
    return not commit.startswith(_ROLLBACK)


def short(commit: str) -> str:
    """The first seven characters of a commit, as Git shows it; a rollback by its whole name."""
    return commit[:7] if is_git(commit) else commit


def named(commit: str) -> str:
    """`commit a1b2c3d`, or a rollback by its name."""
    return f"commit {short(commit)}" if is_git(commit) else commit
