"""Intents: the writes that apply records in the ledger before it sends them."""

from collections.abc import Callable, Collection, Iterable

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import LedgerKey
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import UNKNOWN_KINDS
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Keys, LedgerRow, LostLimit, Stored, Targets
from quota_ops.model.runs.outcome import Outcome, find_open, find_unwritten
from quota_ops.stages.succession import refuse_if_overtaken
from quota_ops.store.ledger import claims, ledger, ledger_end
from quota_ops.store.places.numbered_files import file_name
from quota_ops.store.run.folder import RunFolder


def record_intents(
    folder: RunFolder,
    plan: Plan,
    stored: Stored,
    lost: Collection[LostLimit] = (),
    *,
    state: str = ledger_edits.INTENDED,
) -> str | None:
    """Record an intent for every write of the plan, and for the clear of each lost limit.

    A row that has changed since gets one, because it may be as planned again when it is sent; a row
    that was released since gets none. `state` is ALTERED for an alter, which nothing overtakes.
    Returns the name of the ledger file that has the intents, None if none is new. Raises Refused
    like `refuse_if_overtaken` does.
    """
    about, now = folder.about(), iso_utc()
    intents = [
        LedgerRow(
            row.cluster,
            row.entity,
            row.key,
            row.target,
            state,
            owner=row.owner,
            file=row.file,
            commit=row.find_commit(plan.commit),
            run=about.run,
            at=now,
            sequence=about.sequence,
            returns_to=row.returns_to,
            brokers=row.brokers,
        )
        for row in plan.writes
    ]
    if cleared := {row.id for row in lost}:
        intents += [row._replace(value=None) for row in intents if row.id in cleared]

    def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
        if state != ledger_edits.ALTERED:
            refuse_if_overtaken(folder)  # again after each lost race
        released = find_unmanaged_since(plan, rows.values())
        kept = [row for row in intents if row.id not in released] if released else intents
        ledger_edits.intend(rows, kept, stored)

    return ledger.change(folder.records, edit, sequence=about.sequence)


def find_unmanaged_since(plan: Plan, known: Iterable[LedgerRow]) -> Keys:
    """Return the rows that the plan treats as managed but the ledger no longer contains.

    It omits rows that the cluster does not store: no other owner can lose them.
    """
    managed = {
        row.id for row in plan.writes if row.before is not None and row.kind not in UNKNOWN_KINDS
    }
    entities = {entity for entity, _ in managed}
    return frozenset(managed.difference(row.id for row in known if row.entity in entities))


def watch_releases(folder: RunFolder, plan: Plan, noted: str | None) -> Callable[[], Keys]:
    """Return a function that returns the released rows, or raises Refused when overtaken.

    It raises Claimed when another process has taken over the run, and InvalidInput when the ledger
    ends before the file `noted`, which has the intents. It reads files only when the ledger or the
    claims have a new one.
    """
    records, seen = folder.records, list[int]()
    released: Keys = frozenset()

    def find_new() -> Keys:
        nonlocal seen, released
        folder.require_claim()
        last = max(ledger.file_numbers(records), default=0)
        if noted and file_name(last, ledger_end.KIND) < noted:
            raise InvalidInput(
                f"the run store has confirmed {noted}, with what this run is about to write, and "
                f"does not have it: {records.ledger}",
                "Check that the run store keeps what it confirms, and that nobody has restored an "
                "older copy.",
            )
        if (files := [last, claims.last_number(records)]) != seen:
            refuse_if_overtaken(folder)
            released = find_unmanaged_since(plan, ledger.read(records).rows)
            seen = files
        return released

    return find_new


def withdraw_intents(
    folder: RunFolder, outcomes: Iterable[Outcome], altered: Targets | None = None
) -> None:
    """Withdraw the run's intents for rows that it certainly did not write, in any attempt.

    `altered` are the values of an alter: a late write of one of them counts as written by it.
    """
    about, outcomes = folder.about(), tuple(outcomes)
    unwritten = find_unwritten(outcomes)
    set_now = {row: value for row, value in (altered or {}).items() if row not in unwritten}
    withdrawn = unwritten - find_open(outcomes)

    def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
        ledger_edits.withdraw(rows, about.run, withdrawn)
        if set_now:
            ledger_edits.count_as_altered(rows, set_now, about.run, about.sequence or 0)

    if withdrawn or set_now:
        ledger.change(folder.records, edit)


def is_as_planned(before: float | None, after: float | None, now: float | None) -> bool:
    """Return whether a row has the value that the plan started from, or the planned value."""
    return same(now, before) or same(now, after)
