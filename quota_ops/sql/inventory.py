"""The files of an inventory of clients: their format, their columns, and what is wrong in them.

Lines are read one at a time only after an engine found a problem, to name the first wrong one.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from io import TextIOWrapper
from itertools import count
from math import isfinite
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.client_effects import INVENTORY
from quota_ops.model.quotas.entity import CLIENT_ID, MAX_NAME_BYTES, USER
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.text import counted
from quota_ops.precedence.resolution import ANONYMOUS
from quota_ops.sql.text import OF_ONE_ENGINE
from quota_ops.store.places.place import Place

INVENTORY_FILES = (".csv", ".jsonl", ".parquet")
REQUIRED = (USER, CLIENT_ID)
MOST_LINE = 2**20
"""How many characters of a line are read."""
_SHOWN = 40
"""How many characters of a cell a message shows."""


class Inventory(Struct, frozen=True):
    """The files of an inventory, all of one format and with the same columns in the same order."""

    place: Place
    files: tuple[Place, ...]
    suffix: str
    columns: tuple[str, ...]
    bytes: int

    @property
    def has_rates(self) -> bool:
        """Whether the inventory has an observed rate of any key."""
        return not set(CLIENT_KEYS).isdisjoint(self.columns)


def find_inventory(place: Place) -> Inventory:
    """Return the files of an inventory: a file, or all files in a folder.

    Names that begin with `_` or `.` are skipped, as Spark does. Raises InvalidInput, with file and
    line, for a file of another format, without a required column or with an unknown one.
    """
    named = list(_list_files(place))
    if not named:
        raise InvalidInput(
            f"the inventory {place} does not exist, or has no files",
            "Correct `inventory` in cluster.yaml, or create it with quota-ops inventory.",
        )
    files = tuple(file for file, _ in named)
    suffixes = {_suffix(file) for file in files}
    if len(suffixes) > 1:
        raise InvalidInput(
            f"the inventory {place} has files of several formats: {', '.join(sorted(suffixes))}"
        )
    first, *others = (_read_columns(file) for file in files)
    for file, columns in zip(files[1:], others, strict=True):
        if columns != first:
            raise InvalidInput(
                f"{file}:1: the columns are {', '.join(columns)}; those of {files[0].name} are "
                f"{', '.join(first)}"
            )
    return Inventory(place, files, suffixes.pop(), first, sum(size for _, size in named))


def measure_parquet(inventory: Inventory) -> tuple[int, int]:
    """Return how many rows, and decompressed bytes, the files of a Parquet inventory declare.

    Decodes none of them.
    """
    rows = size = 0
    for file in inventory.files:
        with file.open() as opened:
            metadata = pq.read_metadata(opened)
        rows += metadata.num_rows
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        size += sum(group.total_byte_size for group in groups)
    return rows, size


def _list_files(place: Place) -> Iterator[tuple[Place, int]]:
    """Yield the files of an inventory with their sizes."""
    here = next((entry for entry in place.parent.entries() if entry.name == place.name), None)
    if here is not None and here.is_folder:
        for leaf in place.walk():
            if not (leaf.is_folder or _is_hidden(leaf.path)):
                yield place.below(leaf.path), leaf.size
    elif here is not None:
        with place.open() as file:
            yield place, file.seek(0, 2)


def _read_columns(file: Place) -> tuple[str, ...]:
    """Return the columns of a file after a check of their names."""
    try:
        columns = tuple(_columns(file))
    except UnicodeDecodeError:
        raise explain_encoding(file) from None
    except (ValueError, AttributeError, RecursionError, OSError, pa.ArrowInvalid, csv.Error):
        raise InvalidInput(f"{file} cannot be read as a {_suffix(file)} file") from None
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        if cause := _find_cause(columns, missing):
            raise InvalidInput(f"{file}:1: {cause}")
        raise InvalidInput(
            f"{file}:1: the inventory has no column {' and no '.join(missing)}",
            f"Its columns are {', '.join(REQUIRED)} and, optionally, owner and a rate for each "
            f"key: {', '.join(CLIENT_KEYS)}.",
        )
    for name in columns:
        if name not in INVENTORY.names:
            near = get_close_matches(name, INVENTORY.names, n=1)
            meant = (
                f"Did you mean {near[0]}?" if near else f"Columns: {', '.join(INVENTORY.names)}."
            )
            raise InvalidInput(
                f"{file}:1: {show_cell(name)} is not a column of an inventory. {meant}"
            )
    if len(set(columns)) != len(columns):
        raise InvalidInput(f"{file}:1: a column is there twice: {', '.join(columns)}")
    return INVENTORY.names if _suffix(file) == ".jsonl" else columns


def _find_cause(columns: tuple[str, ...], missing: list[str]) -> str:
    """Return why columns are missing, if the cause is a common mistake."""
    first = columns[0] if columns else ""
    if first.lower().startswith("sep="):
        return f"the first line is {show_cell(first)}. Remove it: the columns come first."
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if sign in first:
            return f"the columns are separated by {name}. Save the file with commas."
    for name in missing:
        for column in columns:
            if re.sub(r"[ _]+", "-", column.strip().lower()) == name:
                return f"{show_cell(column)} is not a column of an inventory. Did you mean {name}?"
    return ""


def explain_encoding(file: Place) -> InvalidInput:
    """Return the error for a file in another encoding, such as UTF-16 of a spreadsheet."""
    return InvalidInput(f"{file} is not UTF-8 text", "Save it in UTF-8, in Excel as CSV UTF-8.")


def explain_no_client(inventory: Inventory) -> InvalidInput:
    """Return the error for an inventory that has columns only, as a failed export writes it."""
    return InvalidInput(
        f"the inventory {inventory.place} contains no clients",
        "If the export failed, repeat it, or remove `inventory` from cluster.yaml.",
    )


def _columns(file: Place) -> "Iterator[str] | list[str]":
    if _suffix(file) == ".parquet":
        with file.open() as opened:
            return list(pq.read_schema(opened).names)
    with open_text(file) as lines:
        first = lines.readline(MOST_LINE)
        if _suffix(file) == ".csv":
            return next(csv.reader([first]), []) if first else []
        return list(json.loads(first or "{}"))


def open_text(file: Place) -> TextIOWrapper:
    """Open a file of text; a byte order mark, which spreadsheets write, is skipped."""
    return TextIOWrapper(file.open(), encoding="utf-8-sig", newline="")


def _is_hidden(path: str) -> bool:
    return any(name.startswith(("_", ".")) for name in path.split("/"))


def _suffix(file: Place) -> str:
    suffix = "." + file.name.rpartition(".")[2]
    if suffix not in INVENTORY_FILES:
        raise InvalidInput(f"{file} must end in one of {', '.join(INVENTORY_FILES)}")
    return suffix


def show_cell(text: str) -> str:
    """Return the beginning of a cell for a message."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


_MOST_RATE = 1e300
_MOST_SECONDS = 120.0
"""How long the first wrong line is searched for."""
_BATCH = 1000
"""How many rows are decoded at a time: a hostile file may have a cell of many bytes in each."""
PRINCIPAL = "User:"
"""What the principal of a user begins with in an ACL."""
Line = tuple[int, Mapping[str, Any]]
"""The number of a line, from 1, and its cells by column."""


class NotClients(InvalidInput):
    """An inventory has lines that are not valid clients."""


def explain_wrong_clients(inventory: Inventory, repeated: tuple[str, str] | None) -> NotClients:
    """Return the error that names the first line which is not a valid client.

    `repeated` is a client that has several lines. Reads the files again, one line at a time.
    """
    until = monotonic() + _MOST_SECONDS
    for file in inventory.files:
        try:
            for number, cells in _limit_time(_read_lines(file, inventory), until):
                if wrong := _explain_cells(cells):
                    return NotClients(f"{file}:{number}: {wrong}", _CORRECT)
        except _BrokenLine as broken:
            return NotClients(f"{file}:{broken.number}: {broken}", _CORRECT)
        except UnicodeDecodeError:
            wrong_encoding = explain_encoding(file)
            return NotClients(wrong_encoding.message, wrong_encoding.remedy)
        except (OSError, pa.ArrowInvalid) as error:
            return NotClients(f"{file} cannot be read: {error}", _CORRECT)
    if repeated:
        return _explain_repeated(inventory, repeated)
    return NotClients(f"the inventory {inventory.place} cannot be read", _CORRECT)


_CORRECT = "Correct the inventory. Nothing was written."


class _BrokenLine(Exception):
    """A line that cannot be split into cells."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


def _explain_repeated(inventory: Inventory, repeated: tuple[str, str]) -> NotClients:
    found = [
        f"{file}:{number}"
        for file in inventory.files
        for number, cells in _read_lines(file, inventory)
        if (cells[USER] or ANONYMOUS, cells[CLIENT_ID] or "") == repeated
    ]
    user, client_id = map(show_cell, repeated)
    who = (
        f"user {user} with client id {client_id}"
        if repeated[1]
        else f"user {user} without a client id"
    )
    first, second, *_ = [*found, "another line"]
    return NotClients(f"{second}: {who} is already listed at {first}. Remove one.", _CORRECT)


def _explain_cells(cells: Mapping[str, Any]) -> str:
    """Return why a line is not a client; empty if it is one."""
    for name in REQUIRED:
        if (size := len(str(cells[name] or "").encode())) > MAX_NAME_BYTES:
            return f"{name} is {size:,} bytes long; Kafka allows {MAX_NAME_BYTES:,}."
    user = str(cells[USER] or "")
    if user.startswith(PRINCIPAL):
        return f"user is {show_cell(user)}. Write it without {PRINCIPAL}, as quotas do."
    if user != user.strip(" "):
        return f"user is {show_cell(user)}, with a space before or after it. Remove the space."
    for name in CLIENT_KEYS:
        if (cell := cells.get(name)) is not None and not _is_rate(cell):
            shown = show_cell(str(cell))
            return f"{name} is {shown}, which is not a rate. Write a number, or nothing."
    return ""


def _is_rate(cell: object) -> bool:
    text = str(cell)
    try:
        rate = float(text)
    except ValueError:
        return False
    is_plain = text.isascii() and not {*text} & {*OF_ONE_ENGINE}
    return is_plain and isfinite(rate) and 0 <= rate <= _MOST_RATE


def _limit_time(lines: Iterator[Line], until: float) -> Iterator[Line]:
    """Yield lines up to a time of the monotonic clock. Raises _BrokenLine for the next one."""
    for number, cells in lines:
        if monotonic() > until:
            raise _BrokenLine(number, "this line or a later one is not a client.")
        yield number, cells


def _read_lines(file: Place, inventory: Inventory) -> Iterator[Line]:
    """Yield the lines of a file. Raises _BrokenLine for one that is not of its format."""
    if inventory.suffix == ".parquet":
        with file.open() as opened:
            batches = pq.ParquetFile(opened).iter_batches(batch_size=_BATCH)
            rows = (row for batch in batches for row in batch.to_pylist())
            yield from enumerate(rows, 1)
        return
    with open_text(file) as lines:
        yield from (_csv_lines if inventory.suffix == ".csv" else _json_lines)(lines, inventory)


def _split_lines(lines: TextIOWrapper) -> Iterator[str]:
    """Yield lines with their ends. Raises _BrokenLine for one that is longer than MOST_LINE."""
    for number in count(1):
        line = lines.readline(MOST_LINE + 1)
        if len(line) > MOST_LINE:
            raise _BrokenLine(number, f"the line is longer than {MOST_LINE:,} characters.")
        if not line:
            return
        yield line


_LINE_ENDS = {"\n": "LF", "\r\n": "CRLF", "\r": "CR"}


def _find_end(line: str) -> str:
    """Return how a line ends: LF, CRLF or CR; empty for a last line without an end."""
    return _LINE_ENDS.get(line[len(line.rstrip("\r\n")) :][:2], "")


def _csv_lines(lines: TextIOWrapper, inventory: Inventory) -> Iterator[Line]:
    columns, before, last = inventory.columns, 1, ""

    def read() -> Iterator[str]:
        nonlocal last
        for line in _split_lines(lines):
            last = line
            yield line

    reader = csv.reader(read(), strict=True)
    try:
        next(reader)
        first = _find_end(last)
        for cells in reader:
            number, before = before + 1, reader.line_num
            if cells and len(cells) != len(columns):
                cell_count, column_count = counted(len(cells), "cell"), f"{len(columns):,} columns"
                why = f"the line has {cell_count}, and the file has {column_count}."
                raise _BrokenLine(number, why)
            if (end := _find_end(last)) not in {first, ""}:
                why = f"the line ends with {end}, and the first line with {first}: use one of them."
                raise _BrokenLine(number, why)
            if cells:
                yield (
                    number,
                    {name: cell or None for name, cell in zip(columns, cells, strict=True)},
                )
    except csv.Error as error:
        raise _BrokenLine(before + 1, f"the line is not CSV: {error}.") from error


def _json_lines(lines: TextIOWrapper, inventory: Inventory) -> Iterator[Line]:
    for number, text in enumerate(_split_lines(lines), 1):
        try:
            cells = json.loads(text, object_pairs_hook=tuple) if text.strip() else ()
        except (ValueError, RecursionError):
            raise _BrokenLine(number, "the line is not a JSON object.") from None
        if not isinstance(cells, tuple):
            raise _BrokenLine(number, "the line is not a JSON object.")
        names = [name for name, _ in cells]
        for name in names:
            if name not in inventory.columns:
                raise _BrokenLine(number, f"{show_cell(name)} is not a column of an inventory.")
            if names.count(name) > 1:
                raise _BrokenLine(number, f"{show_cell(name)} is there twice. Remove one.")
        if _find_end(text) == "CR":
            raise _BrokenLine(number, "the line ends with CR: end it with LF or CRLF.")
        if cells:
            yield number, dict.fromkeys(inventory.columns) | dict(cells)
