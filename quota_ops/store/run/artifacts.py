"""A folder of artifacts: tables as Parquet, readable JSON, and text."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import pyarrow as pa

from quota_ops.model.errors import InvalidInput, describe_damage
from quota_ops.model.quotas.tables import Row, Table
from quota_ops.store.places import parquet
from quota_ops.store.places.json_text import head, json_text
from quota_ops.store.places.place import Place, explain_lost
from quota_ops.store.places.written_by import explain_form

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class ArtifactFolder:
    """Artifacts by name; each is written completely or not at all."""

    place: Place
    kept: dict[str | Table[Any], Any] | None = field(default=None, compare=False, repr=False)
    """The parsed artifacts that this process wrote or read, by name; None to remember nothing."""
    names: frozenset[str] | None = field(default=None, compare=False, repr=False)
    """The names of the artifacts, if they were listed and do not change; None to look up each."""
    written: set[str] = field(default_factory=set, compare=False, repr=False)
    """The names of the artifacts that this process has written since `require_written`."""

    def with_cache(self) -> Self:
        """Return the same folder, for a process that runs several stages.

        It reads no artifact twice, even if another process changes the file meanwhile.
        """
        return replace(self, kept={})

    def read_cached(self, what: str | Table[Any], read: Callable[[], Parsed]) -> Parsed:
        """Return a parsed artifact: the remembered one, or else the result of `read`."""
        if self.kept is None:
            return read()
        if what not in self.kept:
            self.kept[what] = read()
        kept: Parsed = self.kept[what]
        return kept

    def has(self, name: str) -> bool:
        """Return whether the artifact exists.

        Raises InvalidInput if this process cannot find out.
        """
        return (self.place / name).exists() if self.names is None else name in self.names

    def write_table(self, table: Table[Any], rows: Sequence[Sequence[Any]]) -> None:
        """Write a table's rows to NAME.parquet."""
        self.write_arrow(table, parquet.from_rows(table, rows))

    def write_arrow(self, table: Table[Any], arrow: pa.Table) -> None:
        """Write an Arrow table, with the notes in its metadata, to NAME.parquet."""
        content = parquet.to_bytes(table, arrow, parquet.notes(arrow))
        self._write(table.file, content)
        if self.kept is not None:
            self.kept[table] = arrow

    def read_table(self, table: Table[Any]) -> pa.Table:
        """Return the table of an earlier stage. Raises InvalidInput if it is missing or damaged."""
        place = str(self.place / table.file)
        return self.read_cached(
            table, lambda: parquet.from_bytes(table, self._read(table.file), place)
        )

    def read_rows(self, table: Table[Row]) -> Iterator[Row]:
        """Return the rows of an earlier stage's table. Raises as `read_table`."""
        return parquet.read_rows(table, self.read_table(table))

    def count(self, table: Table[Any]) -> int:
        """Return the number of rows in the table of an earlier stage."""
        return int(self.read_table(table).num_rows)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write readable JSON: each field, and each item of a list, on a line of its own."""
        self.write_text(name, json_text(value))

    def read_json(self, name: str, before: str | None = None) -> dict[str, Any]:
        """Return the JSON of an earlier stage. Raises InvalidInput if it is missing or damaged.

        With the name of a list as `before`, read only the fields before that list.
        """
        try:
            value = json.loads(self._read(name, before))
        except (RecursionError, ValueError) as error:
            raise InvalidInput(f"{self.place / name} is not valid JSON: {error}") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.place / name} is not a JSON object")
        return value

    def read_as(
        self, name: str, parse: Callable[[dict[str, Any]], Parsed], before: str | None = None
    ) -> Parsed:
        """Return a JSON artifact parsed by `parse`. Raises InvalidInput as `read_json`."""
        value = self.read_json(name, before)
        try:
            return parse(value)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise self.explain_damage(name, error) from error

    def explain_damage(self, name: str, error: Exception) -> InvalidInput:
        """Return the error for a JSON artifact that decodes, but not to what is written now."""
        return explain_form(self.place / name, describe_damage(error))

    def write_text(self, name: str, text: str) -> None:
        """Write text as UTF-8; half a surrogate pair becomes its escape, as in JSON."""
        self._write(name, text.encode("utf-8", "backslashreplace"))

    def _write(self, name: str, content: bytes) -> None:
        (self.place / name).replace(content)
        self.written.add(name)
        self._forget(name)

    def require_written(self) -> None:
        """Raise InvalidInput if the store lost an artifact that it has confirmed.

        Without this, a lost list of outcomes would look as if nothing had been sent.
        """
        if lost := self.written.difference(self.place.list() if self.written else ()):
            raise explain_lost(self.place / min(lost))
        self.written.clear()

    def _forget(self, what: str | Table[Any]) -> None:
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
                f"{self.place / name} is missing: the stage that writes it has not run"
            ) from None
        except OSError as error:
            raise InvalidInput(f"{self.place / name} cannot be read: {error.strerror}") from error
