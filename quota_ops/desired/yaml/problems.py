"""The problems of a cluster's files: each with its place, and not without end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Finding, Problem

MOST_OF_A_FILE = 100
MOST = 1_000
"""How many problems are listed of one file, and of a cluster; the others are counted."""
_LONGEST_MESSAGE = 1_000


@dataclass
class Problems:
    """The problems that are listed, in order of their finding, and how many others there are."""

    listed: list[Problem] = field(default_factory=list)
    unlisted: int = 0
    files: set[str] = field(default_factory=set)
    """Every file that has a problem, listed or not."""
    _by_file: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.listed) + self.unlisted

    def has_room(self, file: str) -> bool:
        """Whether another problem of a file would be listed: else it need not be put in words."""
        return len(self.listed) < MOST and self._by_file[file] < MOST_OF_A_FILE

    def add(self, problem: Problem) -> None:
        """List a problem, or count it where there is no room."""
        if not self.has_room(problem.file):
            self.count_unlisted(problem.file)
            return
        if len(problem.message) > _LONGEST_MESSAGE:
            problem = replace(problem, message=f"{problem.message[:_LONGEST_MESSAGE]}…")
        self.files.add(problem.file)
        self._by_file[problem.file] += 1
        self.listed.append(problem)

    def count_unlisted(self, file: str) -> None:
        """Count a problem of a file without listing it."""
        self.files.add(file)
        self.unlisted += 1

    def as_error(
        self, *, files: int, quotas: int, findings: Sequence[Finding] = ()
    ) -> InvalidDesiredState:
        """The error that shows them."""
        return InvalidDesiredState(
            self.listed,
            unlisted=self.unlisted,
            files=files,
            files_with_problems=len(self.files),
            quotas=quotas,
            findings=findings,
        )
