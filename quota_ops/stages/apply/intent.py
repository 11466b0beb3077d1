"""What apply notes in the ledger before it sends, and what is taken back find_unwritten."""

from collections.abc import Callable, Iterable, Mapping

from quota_ops.kafka.outcomes import Stored, find_unwritten
from quota_ops.model import ledger_edits
from quota_ops.model.difference import UNKNOWN_KINDS, Difference
from quota_ops.model.ledger_edits import has_arrived
from quota_ops.model.memory import LedgerKey
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.plan import Plan
from quota_ops.model.quota import same
from quota_ops.model.rows import Key, LedgerRow
from quota_ops.store import claims, ledger
from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.succession import refuse_if_overtaken

Keys = frozenset[Key]
"""Rows by (entity, key)."""


def record_intents(folder: RunFolder, plan: Plan, stored: Stored, ledger_folder: Place) -> Keys:
    """Note every write of the plan whose row is still as planned; Refused as `refuse_if_overtaken`.

    A row that was released since the plan was made is not noted. Returns the rows of which nothing
    had been noted before: of the others an earlier attempt, killed before it could say, may have
    written or still be writing.
    """
    about = folder.about()
    now = iso_utc()
    intents = [
        LedgerRow(
            row.cluster,
            row.entity,
            row.key,
            row.target,
            ledger_edits.INTENDED,
            row.owner,
            row.file,
            about["commit"],
            about["run"],
            now,
            about["sequence"],
        )
        for row in plan.writes
        if is_as_planned(row.before, row.target, stored.get(row.id))
    ]
    noted: set[Key] = set()

    def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
        refuse_if_overtaken(folder, ledger_folder)  # again each time that another writer was first
        noted.clear()
        noted.update(row.id for row in rows.values() if row.state == ledger_edits.INTENDED)
        gone = find_released(plan, rows.values())
        ours = (row for row in intents if row.id not in gone)
        ledger_edits.intend(rows, ours, stored)

    ledger.change(ledger_folder, edit)
    return frozenset({row.id for row in intents} - noted)


def find_released(plan: Plan, known: Iterable[LedgerRow]) -> Keys:
    """Return the rows that the plan replaces as managed ones and that the ledger no longer has.

    A row that is absent from the cluster is nobody's to lose: it is never among them.
    """
    managed = {
        row.id for row in plan.writes if row.before is not None and row.kind not in UNKNOWN_KINDS
    }
    entities = {entity for entity, _ in managed}
    return frozenset(managed.difference(row.id for row in known if row.entity in entities))


def watch_releases(folder: RunFolder, plan: Plan, ledger_folder: Place) -> Callable[[], Keys]:
    """Return what raises Refused when the run is overtaken, and else returns the rows released.

    Where neither the ledger nor the claims have a new file, none is read.
    """
    seen: list[int] = []
    gone: Keys = frozenset()

    def look() -> Keys:
        nonlocal seen, gone
        last = max(ledger.file_numbers(ledger_folder), default=0)
        if (files := [last, claims.last_number(ledger_folder)]) != seen:
            refuse_if_overtaken(folder, ledger_folder)
            gone = find_released(plan, ledger.read(ledger_folder).rows)
            seen = files
        return gone

    return look


def withdraw_intents(
    folder: RunFolder, outcomes: Iterable[Outcome], noted: Keys, ledger_folder: Place
) -> None:
    """Withdraw the intents that `record_intents` recorded for rows that were surely not written.

    What another run has noted of them since is left.
    """
    run = folder.about()["run"]
    left = noted & find_unwritten(outcomes)

    def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
        ours = (
            row for row in rows.values() if (row.run, row.state) == (run, ledger_edits.INTENDED)
        )
        still = [row.id for row in ours if row.id in left]
        ledger_edits.withdraw(rows, still)

    if left:
        ledger.change(ledger_folder, edit)


def find_unarrived(
    known: Iterable[LedgerRow], reported: Mapping[Key, Difference]
) -> frozenset[LedgerRow]:
    """Return the intents of killed runs that never arrived, for rows that this run only reports.

    Verify removes the intent of a row that is set, cleared or forgotten. Without this, the intent
    of a reported row would stay forever, and a value set by hand later would count as managed.
    """
    return frozenset(
        row
        for row in known
        if row.state == ledger_edits.INTENDED
        if (found := reported.get(row.id)) and not has_arrived(row, found.before)
    )


def is_as_planned(before: float | None, after: float | None, now: float | None) -> bool:
    """Whether a row holds what the plan was made from, or what it asks for."""
    return same(now, before) or same(now, after)
