"""Problems in files (invalid input) and findings (valid, but probably not intended)."""

from dataclasses import dataclass, field
from typing import NamedTuple

from quota_ops.model.text import counted


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem; `line` and `column` count from 1, `excerpt` is the unchanged line."""

    file: str
    line: int
    column: int
    message: str
    remedy: str | None = None
    excerpt: str | None = None
    length: int = 1
    other: "Problem | None" = field(default=None, compare=False)
    """The same problem at its other place, for one that concerns two."""

    @property
    def place(self) -> str:
        """The place in the form that editors and terminals recognize: `file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    def __str__(self) -> str:
        text = f"{self.place}  {self.message}"
        return text if self.remedy is None else f"{text} {self.remedy}"


class InvalidFile(NamedTuple):
    """A quotas file with problems, which a run leaves out: its quotas stay as they are stored.

    `file` is the path below the cluster's folder, `line` and `message` are of the first problem.
    `problems` counts those that check lists: 0 if only the cluster's brokers and topics show them.
    """

    file: str
    owner: str | None
    line: int
    message: str
    problems: int

    @property
    def text(self) -> str:
        """The file, its owner and a problem: `a.yaml (owner search) is invalid: line 8: …`."""
        whose = f" (owner {self.owner})" if self.owner else ""
        more = f" ({counted(self.problems, 'problem')})" if self.problems > 1 else ""
        return f"{self.file}{whose} is invalid: line {self.line}: {self.message}{more}"


class Location(NamedTuple):
    """A place in a file below the cluster's folder; line and column count from 1.

    A plan knows the line of a row, but not its column.
    """

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in self if part is not None)


class Finding(NamedTuple):
    """One finding; `entity`, `key` and `place` are None if it does not concern exactly one.

    `silenced` is the reason why a person silenced it, None if it is not silenced. `subject` is what
    it concerns besides entity and key: an owner, a profile, a group, a code.
    """

    code: str
    entity: str | None
    key: str | None
    message: str
    remedy: str
    place: Location | None = None
    silenced: str | None = None
    subject: str = ""

    @property
    def identity(self) -> "FindingIdentity":
        """What makes two findings the same, wherever their lines are."""
        return self.code, self.entity, self.key, self.subject

    @property
    def where(self) -> str:
        """The place of the finding or, without one, its entity or the cluster."""
        return str(self.place) if self.place else self.entity or "the cluster"


FindingIdentity = tuple[str, str | None, str | None, str]


class Silence(NamedTuple):
    """A finding code silenced with a reason: for one entity, or for the whole cluster (None)."""

    code: str
    reason: str
    entity: str | None
    place: Location
