"""What a guard found: its words for people, and the facts that a decision about it is bound to."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quota_ops.model.difference import Difference
from quota_ops.model.numbers import plural


@dataclass(frozen=True, slots=True)
class GuardFinding:
    """A guard that blocks a plan: its name, what it saw, and the reason of who overrode it."""

    guard: str
    message: str
    allowed: str | None = None
    rows: int = 0
    """How many rows it is about; 0 where it judges the whole plan."""
    share: float | None = None
    """Which share of the managed rows those are, in percent, where that is what it judges."""
    subject: str = ""
    """A fingerprint of the rows, or of what else it is about: who else has it, means the same."""

    def is_no_worse(self, shown: Iterable["GuardFinding"]) -> bool:
        """Whether a person who was shown those findings has seen this one.

        The same guard about the very same rows, commit or fields, at no larger share. The values
        of the rows, and so the depth of a cut, are in the plan's digest.
        """
        return any(
            one.guard == self.guard
            and one.subject == self.subject
            and self.rows <= one.rows
            and (self.share or 0.0) <= (one.share or 0.0)
            for one in shown
        )


def found(
    guard: str,
    message: str,
    rows: Sequence[Difference] = (),
    share: float | None = None,
    *,
    what: object = None,
) -> GuardFinding:
    """A finding about rows, or about `what`, a JSON value."""
    names = sorted([row.entity, row.key] for row in rows)
    text = json.dumps([names, what], sort_keys=True, separators=(",", ":"))
    subject = hashlib.sha256(text.encode()).hexdigest()[:32]
    return GuardFinding(str(guard), message, None, len(rows), share, subject)


def read_guards(values: Mapping[str, Any]) -> tuple[GuardFinding, ...]:
    """Return the guards that alter.json names; none of one that an earlier version left."""
    return tuple(GuardFinding(**one) for one in values.get("guards", ()))


def idle_words(
    allow: Iterable[str], guards: Iterable[GuardFinding], option: str = "--allow"
) -> str | None:
    """Return a note that names the guards to override that did not block; None without any."""
    idle = [name for name in dict.fromkeys(allow) if name not in {one.guard for one in guards}]
    if not idle:
        return None
    which = plural(len(idle), "that guard", "those guards")
    return f"{option} {', '.join(idle)}: {which} did not block anything, so no override is recorded"
