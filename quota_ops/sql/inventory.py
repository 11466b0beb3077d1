"""The files of an inventory of clients: their format, their columns, and what is wrong in them."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from io import TextIOWrapper

import pyarrow as pa
import pyarrow.parquet as pq

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.client_effects import INVENTORY
from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.store.places.place import Place

INVENTORY_FILES = (".csv", ".jsonl", ".parquet")
REQUIRED = (USER, CLIENT_ID)
MOST_LINE = 2**20
"""How many characters of a line are read."""
_SHOWN = 40
"""How many characters of a cell a message shows."""


@dataclass(frozen=True, slots=True)
class Inventory:
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
            f"the inventory {place} has files of several formats: {_words(suffixes)}"
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
            f"Its columns are {', '.join(REQUIRED)} and, if you like, owner and a rate for each "
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
    """Return why columns are missing, if it is what spreadsheets and people do often."""
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


def _words(names: "set[str]") -> str:
    return ", ".join(sorted(names))


def show_cell(text: str) -> str:
    """Return the beginning of a cell for a message."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
