"""The ledger: the rows of a cluster that are managed, as numbered files.

Each file is the whole ledger after one change and is never written again. A change reads the
last file and creates the next number. If another writer was first, it reads again: no writer
undoes another's rows, and the previous file is the backup.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import NO_BROKERS, KnownBrokers
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.quotas.tables import LEDGER
from quota_ops.model.stored import from_json, to_json
from quota_ops.store.ledger import ledger_end
from quota_ops.store.ledger.ledger_end import KIND, LedgerEnd
from quota_ops.store.places import numbered_files, parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ClusterStore, safe_name
from quota_ops.store.places.written_by import NewerFile, OtherForm, explain_newer

COMMITS_KEPT, EQUAL_KEPT = 1000, 20


class Notes(Struct, frozen=True):
    """What a file of a ledger has in its metadata, each as JSON, besides the rows."""

    policy: dict[str, Any] | None = None
    """The policy that was last applied, in the form of `model.stored`."""
    commits: tuple[str, ...] = ()
    """The commits that were applied, the newest at the end."""
    declared: str | None = None
    """The digest of what the newest commit declares besides the policy, if nothing was run since.

    None after a run without a commit: the next commit may declare the same, but the newest did not.
    """
    equal: tuple[str, ...] = ()
    """The commits before the newest that declare the same, policy included."""
    brokers: KnownBrokers = NO_BROKERS
    """The brokers of the last verified run."""
    applied_by: int | None = None
    """The number of the run that recorded the newest commit."""
    after_loss: bool = False
    """Whether its first file was written when an earlier ledger was, or may have been, lost."""


@dataclass(eq=False)
class Ledger:
    """A cluster's ledger at one moment; `file` is None if it has no file yet.

    `table` has the rows, and the notes in its metadata.
    """

    file: str | None
    table: pa.Table

    @cached_property
    def rows(self) -> tuple[LedgerRow, ...]:
        """The rows as values, which are made when they are first used."""
        return tuple(parquet.read_rows(LEDGER, self.table))

    @cached_property
    def notes(self) -> Notes:
        """What its file has besides the rows."""
        return read_notes(self.table)


Edit = Callable[[dict[ledger_edits.LedgerKey, LedgerRow]], object]


def read(records: ClusterStore) -> Ledger:
    """Return the last file of a cluster's ledger; an empty table if it has no file yet.

    Raises InvalidInput if it cannot be read; also if that file does not parse, has a row twice or a
    row in an unknown state: a damaged ledger must not count as empty.
    """
    try:
        there = file_numbers(records)
    except InvalidInput as error:
        raise InvalidInput(f"the ledger cannot be read: {error.message}", error.remedy) from error
    if not there:
        return Ledger(None, parquet.from_rows(LEDGER, ()))
    place = records.ledger / numbered_files.file_name(there[-1], KIND)
    try:
        content = numbered_files.read_file(place)
    except InvalidInput as error:
        raise InvalidInput(f"the ledger cannot be read: {error.message}", error.remedy) from error
    except OSError as error:
        raise damaged(f"{place}: {error}") from error
    try:
        return _parse(content, place)
    except NewerFile:
        raise
    except (InvalidInput, RecursionError, ValueError) as error:
        why = error.message if isinstance(error, InvalidInput) else f"{place}: {error}"
        if newer := parquet.find_newer_writer(content):
            raise explain_newer(place, newer, why) from error
        numbered_files.require_whole(place, content)
        if isinstance(error, OtherForm):
            raise OtherForm(f"the ledger does not parse: {why}", _OTHER_LEDGER) from error
        raise damaged(why) from error


def read_with_doubt(records: ClusterStore) -> tuple[Ledger, str | None]:
    """Return the ledger, and why runs may have recorded more than it has; None if they have not.

    Raises InvalidInput like `read` and `ledger_end.explain_old_copy`.
    """
    end = ledger_end.read(records)  # first: it is written after each change
    known = read(records)
    doubt = ledger_end.explain_old_copy(records, known.file, end)
    if doubt is None and known.notes.after_loss and known.notes.policy is None:
        doubt = "a new ledger, because the one before was, or may have been, lost"
    return known, doubt


def file_numbers(records: ClusterStore) -> list[int]:
    """Return the numbers of the files of a ledger, in order. Raises InvalidInput like `numbers`."""
    return numbered_files.numbers(records.ledger, KIND)


_OTHER_LEDGER = (
    "Nothing was changed. The file is not damaged: another version of quota-ops wrote it. Use that "
    "version, since without this file no run knows what it manages."
)


def damaged(why: str) -> InvalidInput:
    """Return the error of a ledger that cannot be read."""
    return InvalidInput(
        f"the ledger does not parse: {why}",
        "Nothing was changed. Move the damaged file elsewhere to continue from the file before it.",
    )


_known: dict[tuple[str, bytes], Ledger] = {}
"""The file that this process read or wrote last, by place and bytes: a run reads it six times."""


def _parse(content: bytes, place: Place) -> Ledger:
    if (known := _known.get((str(place), content))) is not None:
        return known
    table = parquet.from_bytes(LEDGER, content, str(place))
    if not parquet.notes(table):  # no guard would know what was applied
        raise ValueError("it has no notes: another program wrote it")
    read_notes(table)
    _check(table, place)
    return _remember(place, content, Ledger(place.name, table))


def _check(table: pa.Table, place: Place) -> None:
    columns = [
        parquet.to_values(table[name]) for name in ("entity", "key", "state", "value", "run")
    ]
    keys = [
        (entity, key, state, *(() if state == ledger_edits.VERIFIED else (str(value), run)))
        for entity, key, state, value, run in zip(*columns, strict=True)
    ]
    if len(set(keys)) < table.num_rows:
        (((entity, key, *_), _),) = Counter(keys).most_common(1)
        raise InvalidInput(f"{place} has {key} of {entity} twice")
    if odd := {*columns[2]} - ledger_edits.STATES:
        raise InvalidInput(f"{place} has rows in an unknown state: {min(odd)!r}")
    for cluster in {*parquet.to_values(table["cluster"])}:  # `unique` loads 50 ms of pyarrow
        if safe_name(cluster) != place.parent.name:
            raise InvalidInput(f"{place} belongs to another cluster, {cluster}")


def _remember(place: Place, content: bytes, found: Ledger) -> Ledger:
    _known.clear()
    _known[str(place), content] = found
    return found


def read_notes(table: pa.Table) -> Notes:
    """Return the notes of a ledger's table; none for a table that is in no file of a ledger.

    Raises ValueError if they are not as `change` writes them.
    """
    notes = {name: json.loads(text) for name, text in parquet.notes(table).items()}
    return from_json(Notes, notes) if notes else Notes()


def change(
    records: ClusterStore,
    edit: Edit,
    *,
    policy: Policy | None = None,
    commit: str | None = None,
    declared: str | None = None,
    brokers: KnownBrokers | None = None,
    sequence: int | None = None,
) -> str | None:
    """Apply an edit to the last file and create the next; return its name, None if unchanged.

    `edit` changes a dictionary of rows by `ledger_key`; it is called again if another writer was
    first. `sequence` is the number of the run that changes it. `policy`, with `commit` and the
    digest of what the files have `declared`, is recorded as the last applied one, unless a later
    run has recorded its own, and `brokers` as those of the last verified run.
    Raises InvalidInput like `read`, and, after the change, if its name cannot be recorded outside
    the folder: the next run could not recognize an older copy.
    """
    for _ in range(numbered_files.MOST_ATTEMPTS):
        before = read(records)
        rows = {ledger_edits.ledger_key(row): row for row in before.rows}
        edit(rows)
        noted = before.notes if brokers is None else replace(before.notes, brokers=brokers)
        if before.file is None:
            end = ledger_end.read(records)
            lost = ledger_end.explain_old_copy(records, None, end, by=sequence)
            noted = replace(noted, after_loss=lost is not None)
        is_last = policy is not None and (sequence or 0) >= (noted.applied_by or 0)
        if is_last:
            commits, of_now = _add_commit(noted.commits, commit), to_json(Policy, policy)
            equal, declared = noted.equal, declared if commit else None
            if (noted.policy, noted.declared) != (of_now, declared):
                equal = ()
            elif commits != noted.commits:
                equal = (*equal, *noted.commits[-1:])[-EQUAL_KEPT:]
            noted = replace(noted, policy=of_now, commits=commits, declared=declared, equal=equal)
        ledger_edits.drop_absences(rows)
        after = tuple(rows[key] for key in sorted(rows))
        if (after, noted) == (before.rows, before.notes) and before.file is not None:
            return None
        if is_last and commit is not None:
            noted = replace(noted, applied_by=sequence)
        name = numbered_files.file_name(
            1 if before.file is None else int(before.file.partition(".")[0]) + 1, KIND
        )
        notes = {note: json.dumps(value) for note, value in to_json(Notes, noted).items()}
        table = parquet.from_rows(LEDGER, after).replace_schema_metadata(notes)
        content = parquet.to_bytes(LEDGER, table, notes)
        if (place := records.ledger / name).create(content):
            _remember(place, content, Ledger(name, table)).rows = after
            # After a restored copy, only a whole run makes the ledger complete again.
            is_first_or_of_run = before.file is None or policy is not None
            if is_first_or_of_run or _is_end(records, before.file):
                ledger_end.write(records, LedgerEnd.of_file(name, content))
            return name
    raise numbered_files.refused_create(place)


def _add_commit(commits: tuple[str, ...], commit: str | None) -> tuple[str, ...]:
    """Return the commits with one more at the end; a repeated one moves there."""
    if commit is None or commits[-1:] == (commit,):
        return commits
    return (*(earlier for earlier in commits if earlier != commit), commit)[-COMMITS_KEPT:]


def _is_end(records: ClusterStore, file: str | None) -> bool:
    """Return whether the record outside the folder is of this file, by its name and bytes."""
    end = ledger_end.read(records)
    return end is not None and end.name == file and ledger_end.has_file(records, end)
