"""Problems of a cluster's files: the list, which has an end, and files that are not opened."""

import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Finding, Problem
from quota_ops.model.text import counted

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


class LinkError(OSError):
    """A link where none is followed; `is_above` tells a parent folder of what was to be read."""

    def __init__(self, path: Path, *, is_above: bool = False) -> None:
        super().__init__(errno.ELOOP, "It is a link", str(path))
        self.is_above = is_above


class NotAFileError(OSError):
    """A pipe, a device or a socket in place of a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "It is a pipe, a device or a socket", str(path))


class TooManyError(OSError):
    """A folder of more entries than anybody reads."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"It contains more than {counted(most, 'file')}", str(path))


class TooLargeError(OSError):
    """A file of more bytes than its reader takes; `size` is how many."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        self.size = size
