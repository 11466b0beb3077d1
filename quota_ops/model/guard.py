"""The guards by name: what each blocks."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Self


class Guard(StrEnum):
    """The guards' names, as `--allow` takes them; `meaning` says when each asks a person."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        """Make a name that carries its meaning."""
        guard = str.__new__(cls, name)
        guard._value_, guard.meaning = name, meaning
        return guard

    REMOVALS = (
        "removals",
        "More removals than `guards.removals`, or a larger share of our rows than is allowed.",
    )
    OWNER_REMOVED = "owner_removed", "All rows of one owner would be cleared."
    CUT = "cut", "A limit would fall by more than `guards.cut_share` percent."
    RAISE = "raise", "A limit would rise to more than `guards.raise_factor` times what it was."
    SMALL_LIMIT = (
        "small_limit",
        "A limit would fall below `guards.small_byte_rate` or `guards.small_percentage`.",
    )
    DEFAULT_TOUCHED = (
        "default_touched",
        "A default entity would change: it holds for everyone without a quota of their own.",
    )
    TAKEOVER = "takeover", "A value that no run of ours put there would be replaced."
    CONFLICT = "conflict", "Git and the cluster both moved since the last run."
    CHANGED_SINCE = (
        "changed_since",
        "A row that Git removed was changed on the cluster since we put it there.",
    )
    LATE_WRITE = (
        "late_write",
        "The policy says `drift: ask` or `drift: report`, and an earlier run's write came late.",
    )
    RETURNED = (
        "returned",
        "A row that is not in Git has a value again that a run cleared, or wrote late.",
    )
    DRIFT = "drift", "The policy says `drift: ask`, and somebody changed a row of ours."
    UNPROTECTED = (
        "unprotected",
        "A row would be written that the last applied policy leaves alone.",
    )
    POLICY_CHANGED = "policy_changed", "cluster.yaml differs from the policy that was last applied."
    WENT_BACK = "went_back", "The ledger has already moved past this commit."
    OLD_LEDGER = (
        "old_ledger",
        "Rows would be cleared, and the ledger is, or may be, an older copy.",
    )
    EMPTY_DESIRED = (
        "empty_desired",
        "Git describes no quota at all, and rows of ours would be cleared.",
    )


MEANINGS: Mapping[str, str] = {guard.value: guard.meaning for guard in Guard}


def unknown_guards(names: Iterable[str]) -> tuple[str, ...]:
    """The names that are no guard's."""
    return tuple(name for name in names if name not in set(Guard))
