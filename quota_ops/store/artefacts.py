"""A folder of artefacts: tables as Parquet, JSON that people can read, and text."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.tables import Table
from quota_ops.store import parquet
from quota_ops.store.json_text import head, json_text
from quota_ops.store.place import Place

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ArtefactFolder:
    """Artefacts by name; every write is whole or not at all."""

    place: Place
    kept: dict[str | Table, Any] | None = field(default=None, compare=False, repr=False)
    """What artefacts that this process left or read stand for, by name, and tables as they are.

    None to keep nothing.
    """

    def keeping(self) -> Self:
        """The same folder for one process that runs stages in a row, and trusts what it has seen.

        What it left or read there it does not read again, whatever others make of the file.
        """
        return replace(self, kept={})

    def once(self, what: str | Table, read: Callable[[], Parsed]) -> Parsed:
        """What an artefact stands for: as it is kept, else as it is read now."""
        if self.kept is None:
            return read()
        if what not in self.kept:
            self.kept[what] = read()
        kept: Parsed = self.kept[what]
        return kept

    def has(self, name: str) -> bool:
        """Whether the artefact is there; InvalidInput when nobody may look."""
        return (self.place / name).exists()

    def size(self) -> int:
        """The bytes of all artefacts."""
        return self.place.size()

    def write_table(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """Leave a table's rows as NAME.parquet."""
        self.write_arrow(table, parquet.from_rows(table, rows))

    def write_arrow(self, table: Table, arrow: pa.Table) -> None:
        """Leave an Arrow table, and the notes beside its rows, as NAME.parquet."""
        content = parquet.to_bytes(table, arrow, parquet.notes(arrow))
        self._write(table.file, content)
        self._forget(table)

    def read_table(self, table: Table) -> pa.Table:
        """A table that an earlier stage left; InvalidInput when it did not, or is damaged."""
        place = str(self.place / table.file)
        return self.once(table, lambda: parquet.from_bytes(table, self._read(table.file), place))

    def count(self, table: Table) -> int:
        """How many rows an earlier stage left in a table."""
        return int(self.read_table(table).num_rows)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Leave a JSON artefact that people can read: a field a line, a list's item a line."""
        self.write_text(name, json_text(value))

    def read_json(self, name: str, before: str | None = None) -> dict[str, Any]:
        """A JSON artefact that an earlier stage left; InvalidInput when not, or damaged.

        The fields `before` a list alone are read at once, however long that is.
        """
        try:
            value = json.loads(self._read(name, before))
        except (RecursionError, ValueError) as error:
            raise InvalidInput(f"{self.place / name} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.place / name} holds no JSON object")
        return value

    def read_as(
        self, name: str, parse: Callable[[dict[str, Any]], Parsed], before: str | None = None
    ) -> Parsed:
        """A JSON artefact, as `read_json` reads it, as what it stands for; InvalidInput if not."""
        value = self.read_json(name, before)
        try:
            return parse(value)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise InvalidInput(f"{self.place / name} is damaged: {error!r}") from error

    def write_text(self, name: str, text: str) -> None:
        """Leave text; half a surrogate pair, which is no text, as the escape that JSON has too."""
        self._write(name, text.encode("utf-8", "backslashreplace"))

    def _write(self, name: str, content: bytes) -> None:
        (self.place / name).replace(content)
        self._forget(name)

    def _forget(self, what: str | Table) -> None:
        if self.kept is not None:
            self.kept.pop(what, None)

    def _read(self, name: str, before: str | None = None) -> bytes:
        try:
            if before is None:
                return (self.place / name).read()
            with (self.place / name).open() as file:
                return head(file, before)
        except FileNotFoundError:
            raise InvalidInput(
                f"{self.place / name} is missing: the stage that leaves it has not run"
            ) from None
        except OSError as error:
            raise InvalidInput(f"{self.place / name} cannot be read: {error.strerror}") from error
