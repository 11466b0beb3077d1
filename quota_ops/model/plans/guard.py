"""The guards: their names, what each blocks, and their findings."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from quota_ops.model.text import plural

if TYPE_CHECKING:
    from quota_ops.model.quotas.difference import Difference


_NO_FILE = "a person may alter quotas of every owner"
_FOR_PLANS = "only a plan reads inventories and use"
_OUTSIDE = "a change outside Git is its purpose"
_NO_COMMIT = "it applies no commit"


class Guard(StrEnum):
    """The names of the guards, as in `--allow`; `meaning` states when each one blocks.

    `not_alter` is why it does not check an `alter`; empty for a guard that checks every run.
    """

    meaning: str
    not_alter: str

    def __new__(cls, name: str, meaning: str, not_alter: str = "") -> Self:
        """Make a name that carries its meaning."""
        guard = str.__new__(cls, name)
        guard._value_, guard.meaning, guard.not_alter = name, meaning, not_alter
        return guard

    REMOVALS = (
        "removals",
        "More rows would be cleared than `guards.removals` or `guards.removals_share` allow.",
    )
    OWNER_REMOVED = "owner_removed", "All rows of one owner would be cleared.", _NO_FILE
    CUT = "cut", "A limit of clients would fall by more than `guards.cut_share` percent."
    RAISE = (
        "raise",
        "A limit of clients would rise to more than `guards.raise_factor` times what it was.",
    )
    UNLIMITED = "unlimited", "Clients that have a limit would have none."
    SMALL_LIMIT = (
        "small_limit",
        "A limit would fall below `guards.small_byte_rate` or `guards.small_percentage`.",
    )
    ABOVE_CEILING = (
        "above_ceiling",
        "An owner would have a higher limit, or a higher total, than `ceilings` allow.",
        _NO_FILE,
    )
    DEFAULT_TOUCHED = (
        "default_touched",
        "A default entity would change: it applies to everyone without a quota of their own.",
    )
    FOREIGN_OWNER = (
        "foreign_owner",
        "A row would change the limit of clients whose limit another owner's row sets.",
        _NO_FILE,
    )
    BLAST_RADIUS = (
        "blast_radius",
        "More clients than `guards.blast_radius` or `guards.blast_radius_share` would get less.",
        _FOR_PLANS,
    )
    WOULD_THROTTLE = (
        "would_throttle",
        "A cut would have throttled clients longer than `guards.would_throttle`, or may have.",
        _FOR_PLANS,
    )
    TAKEOVER = "takeover", "An unmanaged value would be replaced.", _OUTSIDE
    CONFLICT = "conflict", "Git and the cluster both differ from the last verified value.", _OUTSIDE
    CHANGED_SINCE = (
        "changed_since",
        "A row that was removed from Git has changed on the cluster since a run wrote it.",
        _OUTSIDE,
    )
    LATE_WRITE = (
        "late_write",
        "The policy sets `drift: ask` or `drift: report`, and an earlier run's write arrived late.",
        _OUTSIDE,
    )
    RETURNED = (
        "returned",
        "A row that is not in Git has a value again that a run cleared or wrote late.",
        _OUTSIDE,
    )
    DRIFT = (
        "drift",
        "The policy sets `drift: ask`, and a managed row was changed outside Git.",
        _OUTSIDE,
    )
    UNPROTECTED = (
        "unprotected",
        (
            "A plan writes a row that the last applied policy leaves alone, or, in an `alter` or a "
            "`rollback`, that policy is unknown."
        ),
    )
    POLICY_CHANGED = (
        "policy_changed",
        "cluster.yaml, or the name of its folder, differs from the policy that was last applied.",
        _NO_COMMIT,
    )
    WENT_BACK = (
        "went_back",
        "A commit that this one lacks was applied, and the plan sets more than verified values.",
        _NO_COMMIT,
    )
    OLD_LEDGER = (
        "old_ledger",
        "Rows would be cleared, and the ledger is, or may be, an older copy.",
        _NO_COMMIT,
    )
    EMPTY_DESIRED = (
        "empty_desired",
        "Git declares no quota at all, and managed rows would be cleared.",
        _NO_COMMIT,
    )


MEANINGS: Mapping[str, str] = {guard.value: guard.meaning for guard in Guard}
OF_ALTER = tuple(guard.value for guard in Guard if not guard.not_alter)
"""The guards that check an `alter` too."""
_OF_POLICY_OR_LEDGER = (Guard.UNPROTECTED, Guard.POLICY_CHANGED, Guard.WENT_BACK, Guard.OLD_LEDGER)
HOLDING_REPAIRS = frozenset({Guard.LATE_WRITE, Guard.DRIFT, *_OF_POLICY_OR_LEDGER})
"""The guards that hold back repairs of drift too, because they doubt what these restore."""
NOT_TRIED = (Guard.ABOVE_CEILING, Guard.WOULD_THROTTLE, *_OF_POLICY_OR_LEDGER)
"""The guards that no `backtest` tries: the history lacks the totals, use, policies, commits and
ledgers that they compare with."""


def unknown_guards(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are not guards."""
    return tuple(name for name in names if name not in set(Guard))


class GuardFinding(Struct, frozen=True):
    """A guard that blocks a plan: its name, its message, and the reason of an override."""

    guard: str
    message: str
    allowed: str | None = None
    rows: int = 0
    """How many rows it is about; 0 if it judges the whole plan."""
    share: float | None = None
    """The share of the managed rows, or of time, in percent, if the guard judges it."""
    subject: str = ""
    """A fingerprint of the rows or fields; two findings about the same ones share it."""

    def is_no_worse(self, shown: Iterable["GuardFinding"]) -> bool:
        """Return whether a person who saw those findings has seen this one.

        True for the same guard about the same rows, commit or fields, at no larger share. The
        plan's digest covers the values of the rows, and therefore the depth of a cut.
        """
        return any(
            guard.guard == self.guard
            and guard.subject == self.subject
            and self.rows <= guard.rows
            and (self.share or 0.0) <= (guard.share or 0.0)
            for guard in shown
        )


def make_finding(
    guard: str,
    message: str,
    rows: "Sequence[Difference]" = (),
    share: float | None = None,
    *,
    what: object = None,
) -> GuardFinding:
    """Make a finding about rows, or about `what`, a JSON value."""
    names = sorted([row.entity, row.key] for row in rows)
    text = json.dumps([names, what], sort_keys=True, separators=(",", ":"))
    subject = hashlib.sha256(text.encode()).hexdigest()[:32]
    return GuardFinding(str(guard), message, None, len(rows), share, subject)


def format_override(*guards: str) -> str:
    """Return the options that override guards: `--allow cut --reason TEXT`."""
    return f"{' '.join(f'--allow {name}' for name in dict.fromkeys(guards))} --reason TEXT"


def format_blocking(guards: Iterable[GuardFinding], repairs: str = "") -> tuple[str, str]:
    """Return the findings of the guards that block, and the remedy of the error that lists them.

    `repairs` are the rows that a run writes nevertheless, in words.
    """
    blocking = tuple(guards)
    wait = "Nothing was written"
    if repairs:
        wait = f"A run writes only repairs of drift, {repairs}; all other changes wait"
    return (
        "; ".join(f"{guard.guard}: {guard.message}" for guard in blocking),
        f"{wait}. To override: " + format_override(*(guard.guard for guard in blocking)),
    )


def describe_idle_guard(
    allow: Iterable[str], guards: Iterable[GuardFinding], option: str = "--allow"
) -> str | None:
    """Return a note that names the allowed guards that did not block; None if there are none."""
    idle = [name for name in dict.fromkeys(allow) if name not in {guard.guard for guard in guards}]
    if not idle:
        return None
    which = plural(len(idle), "that guard", "those guards")
    return f"{option} {', '.join(idle)}: {which} did not block anything, so no override is recorded"
