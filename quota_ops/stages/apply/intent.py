"""Intents: the writes that apply records in the ledger before it sends them."""

from collections.abc import Callable, Iterable

from quota_ops.kafka.outcomes import find_unwritten
from quota_ops.model import ledger_edits
from quota_ops.model.difference import UNKNOWN_KINDS
from quota_ops.model.memory import LedgerKey
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.plan import Plan
from quota_ops.model.quota import same
from quota_ops.model.rows import Key, Keys, LedgerRow, Stored
from quota_ops.store import claims, ledger
from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.succession import refuse_if_overtaken


def record_intents(folder: RunFolder, plan: Plan, stored: Stored, ledger_folder: Place) -> Keys:
    """Record an intent for every write of the plan whose row is still as planned.

    A row that was released since the plan was made gets no intent. Returns the rows that had no
    intent before: an attempt that was killed may have written the others, or its writes may still
    arrive. Raises Refused as `refuse_if_overtaken` does.
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
            row.returns_to,
        )
        for row in plan.writes
        if is_as_planned(row.before, row.target, stored.get(row.id))
    ]
    known: set[Key] = set()

    def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
        refuse_if_overtaken(folder, ledger_folder)  # again after each lost race
        known.clear()
        known.update(row.id for row in rows.values() if row.state == ledger_edits.INTENDED)
        released = find_unmanaged_since(plan, rows.values())
        ledger_edits.intend(rows, (row for row in intents if row.id not in released), stored)

    ledger.change(ledger_folder, edit)
    return frozenset({row.id for row in intents} - known)


def find_unmanaged_since(plan: Plan, known: Iterable[LedgerRow]) -> Keys:
    """Return the rows that the plan treats as managed but the ledger no longer contains.

    It omits rows that the cluster does not store: no other owner can lose them.
    """
    managed = {
        row.id for row in plan.writes if row.before is not None and row.kind not in UNKNOWN_KINDS
    }
    entities = {entity for entity, _ in managed}
    return frozenset(managed.difference(row.id for row in known if row.entity in entities))


def watch_releases(folder: RunFolder, plan: Plan, ledger_folder: Place) -> Callable[[], Keys]:
    """Return a function that returns the released rows, or raises Refused when overtaken.

    That function reads files only when the ledger or the claims have a new one.
    """
    seen: list[int] = []
    released: Keys = frozenset()

    def find_new() -> Keys:
        nonlocal seen, released
        last = max(ledger.file_numbers(ledger_folder), default=0)
        if (files := [last, claims.last_number(ledger_folder)]) != seen:
            refuse_if_overtaken(folder, ledger_folder)
            released = find_unmanaged_since(plan, ledger.read(ledger_folder).rows)
            seen = files
        return released

    return find_new


def withdraw_intents(
    folder: RunFolder, outcomes: Iterable[Outcome], intents: Keys, ledger_folder: Place
) -> None:
    """Withdraw the intents of `record_intents` for rows that were certainly not written.

    Intents that another run has recorded since are kept.
    """
    intended = folder.about()["run"], ledger_edits.INTENDED
    unwritten = intents & find_unwritten(outcomes)

    def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
        own = [row.id for row in rows.values() if (row.run, row.state) == intended]
        ledger_edits.withdraw(rows, [row for row in own if row in unwritten])

    if unwritten:
        ledger.change(ledger_folder, edit)


def is_as_planned(before: float | None, after: float | None, now: float | None) -> bool:
    """Return whether a row has the value that the plan started from, or the planned value."""
    return same(now, before) or same(now, after)
