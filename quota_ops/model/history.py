"""What is told of an earlier run at a glance."""

from dataclasses import asdict, dataclass
from typing import Any

from quota_ops.model.approval import Decision


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of the run store, as far as it left word of itself."""

    cluster: str
    run: str
    path: str
    started: str | None
    """ISO 8601, UTC; of a run whose run.json is damaged, what its name says, else None."""
    commit: str | None
    came_to: str
    """The word of its report, else how far it came."""
    sentence: str | None
    """The sentence of its report, or why a stage stopped."""
    digest: str | None
    changes: int
    """How many keys it changed on the cluster."""
    decisions: tuple[Decision, ...]
    """What people said of its plan, in order."""
    size: int
    """Bytes that it takes in the run store."""
    by: str | None = None
    """Who made an alter, adopt or release."""
    trouble: str | None = None
    """What could not be read of it."""

    def as_json(self) -> dict[str, Any]:
        """The run as JSON values."""
        return asdict(self) | {"decisions": [one.as_json() for one in self.decisions]}
