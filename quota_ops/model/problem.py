"""A problem in a file that a person wrote: where it is, what it is, how to mend it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem; `line` and `column` count from 1, `excerpt` is the line as it stands."""

    file: str
    line: int
    column: int
    message: str
    remedy: str | None = None
    excerpt: str | None = None
    length: int = 1

    @property
    def place(self) -> str:
        """The place as editors and terminals understand it: `file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    def __str__(self) -> str:
        text = f"{self.place}  {self.message}"
        return text if self.remedy is None else f"{text} {self.remedy}"
