"""The ledger: the rows that this repository put on a cluster, as numbered files.

Each file is the whole ledger after one change and is never written again. A change reads the
last file and creates the next number, which fails when another writer was first: then it reads
again. So no writer undoes another's rows, and the way back is the file before.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.ledger_edits import INTENDED, VERIFIED
from quota_ops.model.memory import REMEMBERED, LedgerKey, drop_expired, ledger_key
from quota_ops.model.policy import Policy
from quota_ops.model.registration import NO_BROKERS, KnownBrokers
from quota_ops.model.rows import LedgerRow
from quota_ops.model.tables import LEDGER
from quota_ops.store import ledger_end, parquet
from quota_ops.store.ledger_end import KIND
from quota_ops.store.ledger_notes import (
    applied_by,
    check_notes,
    known_brokers,
    notes_of,
    with_commit,
)
from quota_ops.store.numbered_files import MOST_ATTEMPTS, file_name, numbers, refused_create
from quota_ops.store.place import Place
from quota_ops.store.run_store import safe_name


@dataclass(frozen=True, slots=True)
class Ledger:
    """A cluster's ledger at one moment; `file` is None when there has never been one."""

    file: str | None
    rows: tuple[LedgerRow, ...]
    policy: dict[str, Any] | None = None
    """The policy that was last applied, as `Policy.as_json` says it."""
    commits: tuple[str, ...] = ()
    """The commits that were applied, the last one last."""
    brokers: KnownBrokers = NO_BROKERS
    """The brokers of the last verified run."""
    applied_by: int | None = None
    """The number of the run that noted the last of them, and the policy."""


Edit = Callable[[dict[LedgerKey, LedgerRow]], object]


@dataclass(slots=True)
class _Content:
    """What the bytes of a ledger file contain: a table, and its rows once they were needed."""

    table: pa.Table
    clusters: frozenset[str]
    _rows: tuple[LedgerRow, ...] | None = None

    @property
    def rows(self) -> tuple[LedgerRow, ...]:
        """The rows of the table."""
        if self._rows is None:
            self._rows = tuple(map(LedgerRow._make, parquet.to_rows(self.table)))
        return self._rows


@dataclass(frozen=True, slots=True)
class LedgerFile:
    """The last file of a ledger; the name is None when there has never been one."""

    name: str | None
    _content: _Content

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table, and the notes beside them."""
        return self._content.table

    @property
    def rows(self) -> tuple[LedgerRow, ...]:
        """The rows as values."""
        return self._content.rows


def last(folder: Place) -> LedgerFile:
    """The last file of a cluster's ledger; an empty table when there has never been one.

    Raises InvalidInput when that file does not parse, has a row twice or one in a state that does
    not exist: a damaged ledger is no empty ledger.
    """
    place = folder
    try:
        there = file_numbers(folder)
        if not there:
            return LedgerFile(None, _Content(parquet.from_rows(LEDGER, ()), frozenset()))
        place = folder / file_name(there[-1], KIND)
        return LedgerFile(place.name, _said(place.read(), place))
    except InvalidInput as error:
        raise damaged(error.message) from error
    except (OSError, RecursionError, ValueError) as error:
        raise damaged(f"{place}: {error}") from error


def file_numbers(folder: Place) -> list[int]:
    """The numbers of the files of a ledger, in order; InvalidInput as `numbers` says."""
    return numbers(folder, KIND)


def damaged(why: str) -> InvalidInput:
    """The error of a ledger that nobody may go on from."""
    return InvalidInput(
        f"the ledger does not parse: {why}",
        "Nothing was changed. Move the damaged file aside to go on from the file before it.",
    )


def read(folder: Place) -> Ledger:
    """The ledger as its last file holds it; InvalidInput as `last` says."""
    found = last(folder)
    notes = (known_brokers(found.table), applied_by(found.table))
    return Ledger(found.name, found.rows, *applied(found.table), *notes)


_known: dict[bytes, _Content] = {}
"""What this process read or wrote last, by its very bytes: a run reads its ledger six times."""


def _said(content: bytes, place: Place) -> _Content:
    if content not in _known:
        table = parquet.from_bytes(LEDGER, content, str(place))
        check_notes(table)
        _check(table, place)
        clusters = frozenset(table["cluster"].to_pylist())  # `unique` loads 50 ms of pyarrow
        _remember(content, _Content(table, clusters))
    known = _known[content]
    for cluster in known.clusters:
        if safe_name(cluster) != place.parent.name:
            raise InvalidInput(f"{place} is of another cluster, {cluster}")
    return known


def _check(table: pa.Table, place: Place) -> None:
    columns = [table[name].to_pylist() for name in ("entity", "key", "state", "value")]
    states = {*columns[2]}
    keys = [
        (entity, key, state, str(value) if state in REMEMBERED else "")
        for entity, key, state, value in zip(*columns, strict=True)
    ]
    if len(set(keys)) < table.num_rows:
        (((entity, key, *_), _),) = Counter(keys).most_common(1)
        raise InvalidInput(f"{place} has {key} of {entity} twice")
    if odd := states - {INTENDED, VERIFIED} - REMEMBERED:
        raise InvalidInput(f"{place} has rows in a state that does not exist: {min(odd)!r}")


def _remember(content: bytes, said: _Content) -> None:
    _known.clear()
    _known[content] = said


def applied(table: pa.Table) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The policy that was last applied, and the applied commits, that stand beside the rows."""
    notes = parquet.notes(table)
    return json.loads(notes.get("policy", "null")), tuple(json.loads(notes.get("commits", "[]")))


def change(
    folder: Place,
    edit: Edit,
    *,
    policy: Policy | None = None,
    commit: str | None = None,
    brokers: KnownBrokers | None = None,
    sequence: int | None = None,
) -> str | None:
    """Apply an edit to the last state and create the next file; its name, None if nothing changed.

    `edit` changes a dictionary of rows by `ledger_key`; it is called again when another writer
    was first. What is remembered no longer is dropped. `policy` and `commit` are noted as the last
    applied ones, unless a run with a larger number than `sequence` noted its own before, `brokers`
    as those of the last verified run. Raises InvalidInput as `read` does, and, after the change,
    where its name cannot be noted outside of the folder: the next run could not tell an older copy
    from it.
    """
    for _ in range(MOST_ATTEMPTS):
        before = read(folder)
        rows = {ledger_key(row): row for row in before.rows}
        edit(rows)
        after = before if brokers is None else replace(before, brokers=brokers)
        if is_last := (sequence or 0) >= (before.applied_by or 0):
            of_now = before.policy if policy is None else policy.as_json()
            after = replace(after, policy=of_now, commits=with_commit(before.commits, commit))
        drop_expired(rows, after.policy, datetime.now(UTC))
        after = replace(after, rows=tuple(rows[key] for key in sorted(rows)))
        if after == before and before.file is not None:
            return None
        if is_last and policy is not None:
            after = replace(after, applied_by=sequence)
        name = file_name(1 if before.file is None else int(before.file.partition(".")[0]) + 1, KIND)
        notes = notes_of(after.policy, after.commits, after.brokers, after.applied_by)
        table = parquet.from_rows(LEDGER, after.rows).replace_schema_metadata(notes)
        content = parquet.to_bytes(LEDGER, table, notes)
        if (folder / name).create(content):
            clusters = frozenset({row.cluster for row in after.rows})
            _remember(content, _Content(table, clusters, after.rows))
            # Of an older copy one row may be put right, and another not: only a run settles it.
            is_first_or_of_run = before.file is None or policy is not None
            if is_first_or_of_run or "" < (ledger_end.read(folder) or "") < name:
                ledger_end.write(folder, name)
            return name
    raise refused_create(folder / name)
