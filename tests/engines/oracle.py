"""The diff once more, by dictionaries: what both engines are held to."""

from quota_ops.model.rows import ActualRow, DesiredRow, LedgerRow

Key = tuple[str, str, str]


def kinds(
    desired: list[DesiredRow], actual: list[ActualRow], ledger: list[LedgerRow]
) -> dict[Key, str]:
    """The kind of every row that differs; values are compared as Python compares them."""
    wanted = {row[:3]: row.value for row in desired}
    held = {row[:3]: row.value for row in actual}
    found = {}
    for key in wanted.keys() | held.keys() | {row[:3] for row in ledger}:
        want, have = wanted.get(key), held.get(key)
        known = {row.state: row.value for row in ledger if row[:3] == key}
        if want is not None and want == have:
            if known != {"verified": want}:
                found[key] = "in_sync"
        elif want is not None:
            found[key] = _wanted(want, have, known)
        else:
            found[key] = _unwanted(have, known)
    return found


def _wanted(want: float, have: float | None, known: dict[str, float | None]) -> str:
    if have in known.values() or (have is None and "verified" not in known):
        return "pending"
    if "verified" not in known:
        return "takeover"
    return "drifted" if want == known["verified"] else "conflict"


def _unwanted(have: float | None, known: dict[str, float | None]) -> str:
    if have is None:
        cleared = "intended" in known and known["intended"] is None
        return "gone" if "verified" in known and not cleared else "cleared"
    if have in known.values():
        return "removed"
    return "changed_since" if "verified" in known else "unmanaged"
