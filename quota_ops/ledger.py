"""The ledger: the rows that this repository put on a cluster, as numbered files.

Each file is the whole ledger after one change and is never written again. A change reads the
last file and creates the next number, which fails when another writer was first: then it reads
again. So no writer undoes another's rows, and the way back is the file before.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from quota_ops import artefact, ledger_end, parquet
from quota_ops.ledger_end import KIND
from quota_ops.model.errors import InvalidInput
from quota_ops.model.policy import Policy
from quota_ops.model.rows import DesiredRow, LedgerRow
from quota_ops.model.tables import LEDGER
from quota_ops.numbered import (
    MOST_ATTEMPTS,
    file_name,
    numbers,
    refused_create,
)
from quota_ops.run_store import safe_name

INTENDED = "intended"
VERIFIED = "verified"

COMMITS_KEPT = 1000

LedgerKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A cluster's ledger at one moment; `file` is None when there has never been one."""

    file: str | None
    rows: tuple[LedgerRow, ...]
    policy: dict[str, Any] | None = None
    """The policy that was last applied, as `Policy.as_json` says it."""
    commits: tuple[str, ...] = ()
    """The commits that were applied, the last one last."""


Edit = Callable[[dict[LedgerKey, LedgerRow]], object]


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """The last file of a ledger and its table; the name is None when there has never been one.

    `rows` are the table's, where this process has them already.
    """

    name: str | None
    table: pa.Table
    rows: tuple[LedgerRow, ...] | None = None


def last(folder: Path) -> LedgerFile:
    """The last file of a cluster's ledger; an empty table when there has never been one.

    Raises InvalidInput when that file does not parse, has a row twice or one in a state that does
    not exist: a damaged ledger is no empty ledger.
    """
    place = folder
    try:
        there = numbers(folder, KIND)
        if not there:
            return LedgerFile(None, parquet.from_rows(LEDGER, ()))
        place = folder / file_name(there[-1], KIND)
        return LedgerFile(place.name, *_said(place.read_bytes(), place))
    except InvalidInput as error:
        raise damaged(error.message) from error
    except (OSError, RecursionError, ValueError) as error:
        raise damaged(f"{place}: {error}") from error


def damaged(why: str) -> InvalidInput:
    """The error of a ledger that nobody may go on from."""
    return InvalidInput(
        f"the ledger does not parse: {why}",
        "Nothing was changed. Move the damaged file aside to go on from the file before it.",
    )


def read(folder: Path) -> Ledger:
    """The ledger as its last file holds it; InvalidInput as `last` says."""
    found = last(folder)
    rows = found.rows
    if rows is None:
        rows = tuple(map(LedgerRow._make, parquet.to_rows(found.table)))
    return Ledger(found.name, rows, *applied(found.table))


class _Content(NamedTuple):
    """What the bytes of a ledger file say."""

    table: pa.Table
    rows: tuple[LedgerRow, ...] | None = None


_known: dict[bytes, _Content] = {}
"""What this process read or wrote last, by its very bytes: a run reads its ledger six times."""


def _said(content: bytes, place: Path) -> _Content:
    if content not in _known:
        table = parquet.from_bytes(LEDGER, content, str(place))
        applied(table)
        _check(table, place)
        _remember(content, _Content(table))
    known = _known[content]
    for cluster in known.table["cluster"].unique().to_pylist():
        if safe_name(cluster) != place.parent.name:
            raise InvalidInput(f"{place} is of another cluster, {cluster}")
    return known


def _check(table: pa.Table, place: Path) -> None:
    columns = [table[name].to_pylist() for name in ("entity", "key", "state")]
    if len(set(zip(*columns, strict=True))) < table.num_rows:
        (((entity, key, _), _),) = Counter(zip(*columns, strict=True)).most_common(1)
        raise InvalidInput(f"{place} has {key} of {entity} twice")
    if odd := {*columns[2]} - {INTENDED, VERIFIED}:
        raise InvalidInput(f"{place} has rows in a state that does not exist: {min(odd)!r}")


def _remember(content: bytes, said: _Content) -> None:
    _known.clear()
    _known[content] = said


def applied(table: pa.Table) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The policy that was last applied, and the applied commits, that stand beside the rows."""
    notes = parquet.notes(table)
    return json.loads(notes.get("policy", "null")), tuple(json.loads(notes.get("commits", "[]")))


def change(
    folder: Path, edit: Edit, *, policy: Policy | None = None, commit: str | None = None
) -> str | None:
    """Apply an edit to the last state and create the next file; its name, None if nothing changed.

    `edit` changes a dictionary of rows by (entity, key, state); it is called again when another
    writer was first. `policy` and `commit` are noted as the last applied ones. Raises
    InvalidInput as `read` does, and, after the change, where its name cannot be noted outside of
    the folder: the next run could not tell an older copy from it.
    """
    for _ in range(MOST_ATTEMPTS):
        before = read(folder)
        rows = {(row.entity, row.key, row.state): row for row in before.rows}
        edit(rows)
        after = Ledger(
            before.file,
            tuple(rows[key] for key in sorted(rows)),
            before.policy if policy is None else policy.as_json(),
            _with(before.commits, commit),
        )
        if after == before and before.file is not None:
            return None
        name = file_name(1 if before.file is None else int(Path(before.file).stem) + 1, KIND)
        notes = _notes(after)
        table = parquet.from_rows(LEDGER, after.rows).replace_schema_metadata(notes)
        content = parquet.to_bytes(LEDGER, table, notes)
        if artefact.create(folder / name, content):
            _remember(content, _Content(table, after.rows))
            # Of an older copy one row may be put right, and another not: only a run settles it.
            if before.file is None or policy is not None or (ledger_end.read(folder) or "") < name:
                ledger_end.write(folder, name)
            return name
    raise refused_create(folder / name)


def _with(commits: tuple[str, ...], commit: str | None) -> tuple[str, ...]:
    if commit is None or commits[-1:] == (commit,):
        return commits
    return (*(one for one in commits if one != commit), commit)[-COMMITS_KEPT:]


def _notes(ledger: Ledger) -> dict[str, str]:
    return {"policy": json.dumps(ledger.policy), "commits": json.dumps(ledger.commits)}


def intend(
    rows: dict[LedgerKey, LedgerRow],
    intents: Iterable[LedgerRow],
    stored: Mapping[tuple[str, str], float],
) -> None:
    """Note writes that are about to be sent; what was verified stays until they are read back.

    An earlier intent that the cluster holds, by `stored`, counts as read back before another takes
    its place: else no later run could tell that the value is ours.
    """
    for row in intents:
        earlier = rows.get((row.entity, row.key, INTENDED))
        if earlier and row.value != earlier.value == stored.get((row.entity, row.key)):
            confirm(rows, [earlier._replace(state=VERIFIED)])
        rows[row.entity, row.key, INTENDED] = row


def withdraw(rows: dict[LedgerKey, LedgerRow], keys: Iterable[tuple[str, str]]) -> None:
    """Take back the note of writes, by (entity, key), that surely did not happen."""
    for entity, key in keys:
        rows.pop((entity, key, INTENDED), None)


def confirm(rows: dict[LedgerKey, LedgerRow], verified: Iterable[LedgerRow]) -> None:
    """Note rows that were read back; a row with a null value was read back as absent."""
    for row in verified:
        rows.pop((row.entity, row.key, INTENDED), None)
        if row.value is None:
            rows.pop((row.entity, row.key, VERIFIED), None)
        else:
            rows[row.entity, row.key, VERIFIED] = row


def adopt(rows: dict[LedgerKey, LedgerRow], adopted: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Note rows that no run of ours put there; those that were not known with this value."""
    noted = []
    for row in adopted:
        known = rows.get((row.entity, row.key, VERIFIED))
        if known is None or known.value != row.value:
            rows[row.entity, row.key, VERIFIED] = row
            noted.append(row)
    return noted


def follow(rows: dict[LedgerKey, LedgerRow], desired: Mapping[tuple[str, str], DesiredRow]) -> None:
    """Let a row's owner and file follow Git; moving it between files is no change of the row."""
    for (entity, key, state), row in rows.items():
        asked = desired.get((entity, key))
        if asked is not None and (row.owner != asked.owner or row.file != asked.file):
            rows[entity, key, state] = row._replace(owner=asked.owner, file=asked.file)
