"""The diff in Python, by dictionaries: the reference for both engines."""

from collections.abc import Iterable, Mapping
from math import isnan
from types import MappingProxyType

from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.quota import same
from quota_ops.model.rows import ActualRow, DesiredRow, LedgerRow

Key = tuple[str, str, str]
Notes = dict[str, LedgerRow]
"""A key's rows of the ledger by their state."""
FROM = {"superseded": "", "cleared": ""}
"""From which time on rows are remembered: these are, whenever they were noted."""


def decide(
    desired: Iterable[DesiredRow],
    actual: Iterable[ActualRow],
    ledger: Iterable[LedgerRow],
    *,
    holds: Mapping[str, str] = MappingProxyType({}),
    drift: str = "repair",
    clear_unmanaged: bool = False,
    remembered_from: Mapping[str, str] = MappingProxyType(FROM),
) -> list[Difference]:
    """Return the rows that differ, in order; values are compared as Python compares them."""
    wanted = {row[:3]: row for row in desired}
    held = {row[:3]: row for row in actual}
    notes: dict[Key, Notes] = {}
    memories: dict[Key, list[LedgerRow]] = {}
    for row in ledger:
        if row.state not in remembered_from:
            notes.setdefault(row[:3], {})[row.state] = row
        elif row.at >= remembered_from[row.state]:
            memories.setdefault(row[:3], []).append(row)
    found = []
    for key in sorted(wanted.keys() | held.keys() | notes.keys()):
        want, have, known = wanted.get(key), held.get(key), notes.get(key, {})
        values = {state: row.value for state, row in known.items()}
        back = _back(memories.get(key, []), have and have.value)
        kind = _kind(want and want.value, have and have.value, values, back)
        if kind != "in_sync" or values != {"verified": want and want.value}:
            hold = holds.get(key[1])
            action = _action(kind, have, hold, drift=drift, clear_unmanaged=clear_unmanaged)
            decided = (Kind(kind), Action(action))
            if recalled := _recalled(kind, memories.get(key, []), back):
                known = known | {"recalled": recalled}
            found.append(_difference(key, decided, want, have, known)._replace(held=hold))
    return found


def _back(memories: list[LedgerRow], have: float | None) -> LedgerRow | None:
    """Return the remembered row whose value is back, a superseded write before a clear."""
    there = {row.state: row for row in memories if same(row.value, have)}
    return there.get("superseded", there.get("cleared"))


def _recalled(kind: str, memories: list[LedgerRow], back: LedgerRow | None) -> LedgerRow | None:
    """Return the remembered row that explains a difference.

    For an unmanaged one, or one to take over, its last clear.
    """
    if kind in {"late_write", "returned"} or (kind == "takeover" and back):
        return back
    if kind not in {"takeover", "unmanaged"}:
        return None
    cleared = [row for row in memories if row.state == "cleared"]
    return max(cleared, key=_last_cleared, default=None)


def _last_cleared(row: LedgerRow) -> tuple[str, str, bool, float]:
    """Return the sort key of the last clear of a key; NaN is the largest value, as in SQL."""
    value = row.value or 0.0
    return (row.at, row.run, isnan(value), 0.0 if isnan(value) else value)


def _kind(
    want: float | None,
    have: float | None,
    known: dict[str, float | None],
    back: LedgerRow | None,
) -> str:
    ours = have in known.values()
    if want is not None and want == have:
        return "in_sync"
    if want is not None:
        return _kind_to_set(want, have, known, back)
    if have is None:
        return "cleared" if ours or back or "verified" not in known else "gone"
    other = "changed_since" if "verified" in known else "unmanaged"
    return "removed" if ours else "returned" if back else other


def _kind_to_set(
    want: float,
    have: float | None,
    known: dict[str, float | None],
    back: LedgerRow | None,
) -> str:
    if have in known.values() or (have is None and "verified" not in known):
        return "pending"
    if back and back.state == "superseded":
        return "late_write"
    if "verified" not in known:
        return "takeover"
    return "drifted" if want == known["verified"] else "conflict"


def _action(
    kind: str, have: ActualRow | None, hold: str | None, *, drift: str, clear_unmanaged: bool
) -> str:
    if kind == "unmanaged" and have:
        clears = clear_unmanaged and have.in_scope and have.hands_off is None
        return "report" if not clears else "clear" if hold is None else "held"
    if kind == "returned" and have and (have.hands_off is not None or not have.in_scope):
        return "report"
    if hold is not None:
        return "held"
    if kind in {"in_sync", "gone", "cleared"}:
        return "record" if kind == "in_sync" else "forget"
    if (have and have.hands_off is not None) or (kind == "drifted" and drift == "report"):
        return "report"
    return "clear" if kind in {"removed", "changed_since", "returned"} else "set"


def _difference(
    key: Key,
    decided: tuple[Kind, Action],
    want: DesiredRow | None,
    have: ActualRow | None,
    known: Notes,
) -> Difference:
    verified, intended, recalled = map(known.get, ("verified", "intended", "recalled"))
    arrived = intended and intended.value == (have and have.value)
    told = recalled or (intended if arrived or verified is None else verified)
    kind, _ = decided
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
        None,
        recalled and recalled.state,
        want and want.derivation,
        want and want.until,
        want and want.returns_to,
        (kind in {"pending", "removed"} and _returns_to(told) == (want.value if want else 0.0))
        or None,
    )


def _returns_to(row: LedgerRow | None) -> float | None:
    return None if row is None else row.returns_to
