"""The problems of a cluster's files, a limited list, and the errors of files not opened."""

import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, field

from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Finding, Problem
from quota_ops.model.text import counted

MOST_OF_A_FILE = 100
MOST = 1_000
"""The most problems that are listed for one file and for a cluster; others are counted."""
_LONGEST_MESSAGE = 1_000


class Problems(Struct):
    """The listed problems, in the order in which they were found, and the number of others."""

    listed: list[Problem] = []
    unlisted: int = 0
    files: set[str] = set()
    """Every file that has a problem, listed or not."""
    _by_file: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.listed) + self.unlisted

    def has_room(self, file: str) -> bool:
        """Whether another problem of a file would be listed; if not, its text is not needed."""
        return len(self.listed) < MOST and self._by_file[file] < MOST_OF_A_FILE

    def add(self, problem: Problem) -> None:
        """List a problem, or only count it if the list is full."""
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
        """Return the error that lists the problems."""
        return InvalidDesiredState(
            self.listed,
            unlisted=self.unlisted,
            files=files,
            files_with_problems=len(self.files),
            quotas=quotas,
            findings=findings,
        )


class LinkError(OSError):
    """A link that is not followed; `is_above` if it is a parent folder of the path."""

    def __init__(self, path: Path, *, is_above: bool = False) -> None:
        super().__init__(errno.ELOOP, "It is a link", str(path))
        self.is_above = is_above


class NotAFileError(OSError):
    """A pipe, a device or a socket in place of a file."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "It is a pipe, a device or a socket", str(path))


class TooManyError(OSError):
    """A folder with too many entries."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"It contains more than {counted(most, 'file')}", str(path))


class TooLargeError(OSError):
    """A file with too many bytes; `size` is their number."""

    def __init__(self, path: Path, size: int) -> None:
        super().__init__(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        self.size = size
