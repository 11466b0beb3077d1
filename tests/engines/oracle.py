"""The diff once more, by dictionaries: what both engines are held to."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.rows import ActualRow, DesiredRow, LedgerRow

Key = tuple[str, str, str]
Notes = dict[str, LedgerRow]
"""A key's rows of the ledger by their state."""


def decide(
    desired: Iterable[DesiredRow],
    actual: Iterable[ActualRow],
    ledger: Iterable[LedgerRow],
    *,
    holds: Mapping[str, str] = MappingProxyType({}),
    drift: str = "repair",
    clear_unmanaged: bool = False,
) -> list[Difference]:
    """The rows that differ, in order; values are compared as Python compares them."""
    wanted = {row[:3]: row for row in desired}
    held = {row[:3]: row for row in actual}
    notes: dict[Key, Notes] = {}
    for row in ledger:
        notes.setdefault(row[:3], {})[row.state] = row
    found = []
    for key in sorted(wanted.keys() | held.keys() | notes.keys()):
        want, have, known = wanted.get(key), held.get(key), notes.get(key, {})
        values = {state: row.value for state, row in known.items()}
        kind = _kind(want and want.value, have and have.value, values)
        if kind != "in_sync" or values != {"verified": want and want.value}:
            hold = holds.get(key[1])
            action = _action(kind, have, hold, drift=drift, clear_unmanaged=clear_unmanaged)
            decided = (Kind(kind), Action(action))
            found.append(_difference(key, decided, want, have, known)._replace(held=hold))
    return found


def _kind(want: float | None, have: float | None, known: dict[str, float | None]) -> str:
    ours = have in known.values()
    if want is not None and want == have:
        return "in_sync"
    if want is not None:
        if "verified" not in known:
            return "pending" if ours or have is None else "takeover"
        return "pending" if ours else "drifted" if want == known["verified"] else "conflict"
    if have is None:
        return "cleared" if ours or "verified" not in known else "gone"
    return "removed" if ours else "changed_since" if "verified" in known else "unmanaged"


def _action(
    kind: str, have: ActualRow | None, hold: str | None, *, drift: str, clear_unmanaged: bool
) -> str:
    if kind == "unmanaged" and have:
        clears = clear_unmanaged and have.in_scope and have.hands_off is None
        return "report" if not clears else "clear" if hold is None else "held"
    if hold is not None:
        return "held"
    if kind in {"in_sync", "gone", "cleared"}:
        return "record" if kind == "in_sync" else "forget"
    if (have and have.hands_off is not None) or (kind == "drifted" and drift == "report"):
        return "report"
    return "clear" if kind in {"removed", "changed_since"} else "set"


def _difference(
    key: Key,
    decided: tuple[Kind, Action],
    want: DesiredRow | None,
    have: ActualRow | None,
    known: Notes,
) -> Difference:
    verified, intended = known.get("verified"), known.get("intended")
    arrived = intended and intended.value == (have and have.value)
    told = intended if arrived or verified is None else verified
    asked = told if want is None or want.owner is None else want
    return Difference(
        *key,
        *decided,
        have and have.value,
        want and want.value,
        verified and verified.value,
        asked and asked.owner,
        want and want.reason,
        want.file if want else told and told.file,
        want and want.line,
        told and told.commit,
        told and told.run,
        told and told.at,
        have and have.hands_off,
    )
