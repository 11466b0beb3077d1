"""The diff in Python, by dictionaries: the reference for both engines."""

from collections.abc import Iterable, Mapping
from math import isnan
from types import MappingProxyType

from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow

Key = tuple[str, str, str]


def decide(
    desired: Iterable[DesiredRow],
    actual: Iterable[ActualRow],
    ledger: Iterable[LedgerRow],
    *,
    holds: Mapping[str, str] = MappingProxyType({}),
    drift: str = "repair",
    clear_unmanaged: bool = False,
) -> list[Difference]:
    """Return the rows that differ, in order; values are compared as Python compares them."""
    wanted = {row[:3]: row for row in desired}
    held = {row[:3]: row for row in actual}
    verified: dict[Key, LedgerRow] = {}
    memories: dict[Key, list[LedgerRow]] = {}
    for row in ledger:
        if row.state == "verified":
            verified[row[:3]] = row
        else:
            memories.setdefault(row[:3], []).append(row)
    found = []
    # The keys with an intent that no later run has replaced or verified.
    intended = {
        key
        for key, rows in memories.items()
        if _current_number(rows, verified.get(key)) is not None
    }
    for key in sorted(wanted.keys() | held.keys() | verified.keys() | intended):
        want, have, known = wanted.get(key), held.get(key), verified.get(key)
        wanted_value, stored = want and want.value, have and have.value
        managed = known and known.value
        if wanted_value == stored == managed and key not in intended:
            continue
        last = _current_number(memories.get(key, []), known)
        remembered = _late(memories.get(key, []), last)
        if wanted_value is stored is managed is None and not remembered:
            continue
        is_altered = stored is not None and any(
            row.state == "altered" and last == (row.sequence or 0) and same(row.value, stored)
            for row in memories.get(key, [])
        )
        arrived, back = (None, None) if is_altered else _back(remembered, stored, last)
        kind = _kind(wanted_value, stored, managed, arrived, back)
        hold = holds.get(key[1])
        action = _action(kind, have, hold, drift=drift, clear_unmanaged=clear_unmanaged)
        decided = (Kind(kind), Action(action))
        recalled = _recalled(kind, remembered, back)
        told = arrived or recalled or known
        made = _difference(key, decided, (want, have, known), told)
        found.append(made._replace(held=hold, memory=recalled and recalled.state))
        if want:
            current = [row for row in memories.get(key, []) if last == (row.sequence or 0)]
            sent = [row for row in current if row.state == "intended"] or ([known] if known else [])
            commits = (row.commit for row in sent if same(row.value, want.value))
            first = max((commit for commit in commits if commit is not None), default=None)
            found[-1] = found[-1]._replace(commit=first)
            if kind == "in_sync" and arrived:
                found[-1] = found[-1]._replace(returns_to=arrived.returns_to)
            elif known and known.value == want.value:
                found[-1] = found[-1]._replace(returns_to=known.returns_to)
            elif kind == "in_sync":
                found[-1] = found[-1]._replace(returns_to=None)
    return found


def _late(memories: list[LedgerRow], last: int | None) -> list[LedgerRow]:
    """Return the memories without current alters; any other alter is an intent like the others."""
    return [
        row._replace(state="intended") if row.state == "altered" else row
        for row in memories
        if row.state != "altered" or last != (row.sequence or 0)
    ]


def _back(
    memories: list[LedgerRow], have: float | None, last: int | None
) -> tuple[LedgerRow | None, LedgerRow | None]:
    """Return the current intent that arrived, and else the row whose value is back.

    An intent is current if no other row of the key, except a cleared value, is of a later run. Of
    several rows, an intent comes before a clear, and the last before all others.
    """
    there = [row for row in memories if same(row.value, have)]
    intents = [row for row in there if row.state == "intended"]
    if current := [row for row in intents if last == (row.sequence or 0)]:
        return max(current, key=_last), None
    return None, max(intents or there, key=_last, default=None)


def _current_number(memories: list[LedgerRow], known: LedgerRow | None) -> int | None:
    """Return the number of the last intent, if no later run has verified the key."""
    numbers = [row.sequence or 0 for row in memories if row.state in {"intended", "altered"}]
    if not numbers or (known is not None and max(numbers) <= (known.sequence or 0)):
        return None
    return max(numbers)


def _recalled(kind: str, memories: list[LedgerRow], back: LedgerRow | None) -> LedgerRow | None:
    """Return the remembered row that explains a difference.

    For an unmanaged one, or one to take over, its last clear.
    """
    if kind in {"late_write", "returned"} or (kind == "takeover" and back):
        return back
    if kind not in {"takeover", "unmanaged"}:
        return None
    cleared = [row for row in memories if row.state == "cleared"]
    return max(cleared, key=_last, default=None)


def _last(row: LedgerRow) -> tuple[str, str, bool, float]:
    """Return the sort key of the last row of a key; NaN is the largest value, as in SQL."""
    value = row.value or 0.0
    return (row.at, row.run, isnan(value), 0.0 if isnan(value) else value)


def _kind(
    want: float | None,
    have: float | None,
    verified: float | None,
    arrived: LedgerRow | None,
    back: LedgerRow | None,
) -> str:
    ours = arrived or (verified is not None and have == verified)
    if want is not None and want == have:
        return "in_sync"
    if want is not None:
        return _kind_to_set(want, have, verified, back, ours=bool(ours))
    if have is None:
        return "cleared" if arrived or back or verified is None else "gone"
    other = "unmanaged" if verified is None else "changed_since"
    return "removed" if ours else "returned" if back else other


def _kind_to_set(
    want: float, have: float | None, verified: float | None, back: LedgerRow | None, *, ours: bool
) -> str:
    if ours or (have is None and verified is None):
        return "pending"
    if back and back.state == "intended":
        return "late_write"
    if verified is None:
        return "takeover"
    return "drifted" if want == verified else "conflict"


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
    sides: tuple[DesiredRow | None, ActualRow | None, LedgerRow | None],
    told: LedgerRow | None,
) -> Difference:
    want, have, verified = sides
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
        None,
        want and want.derivation,
        want and want.until,
        want and want.returns_to,
        (kind in {"pending", "removed"} and _returns_to(told) == (want.value if want else 0.0))
        or None,
    )


def _returns_to(row: LedgerRow | None) -> float | None:
    return None if row is None else row.returns_to
