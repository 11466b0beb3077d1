"""The outcome of each entity of a batch, with the complete response of the broker."""

from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.entity import Entity


class EntityResponse(NamedTuple):
    """A broker's response for one entity: Kafka's error code (0 is NONE), and its message."""

    entity: Entity
    code: int
    name: str
    message: str | None


class Status(StrEnum):
    """What is known about the outcome of a write."""

    ACCEPTED = "accepted"
    """The broker accepted it (or would, when it only validated)."""
    ALREADY = "already"
    """The cluster stored it before, so nothing was sent."""
    REFUSED = "refused"
    """The broker rejected it; `message` is its reason."""
    STALE = "stale"
    """The cluster stores neither the planned nor the desired value, or the row was released."""
    UNKNOWN = "unknown"
    """No response arrived, and describing the cluster did not settle it."""
    HELD = "held"
    """A person held the entity after the plan was made: skipped, and no failure."""
    WAITING = "waiting"
    """A guard blocks the plan, and the run wrote only its repairs: skipped, and no failure."""
    NOT_SENT = "not_sent"
    """The run stopped before its turn."""


class Outcome(NamedTuple):
    """The outcome of one entity in one batch; `keys` are its rows.

    `earlier` is the status, ACCEPTED or UNKNOWN, that an earlier attempt of the run recorded for
    rows that this attempt did not write. None if no earlier attempt sent them. `may_arrive` is
    whether any attempt sent a request with these rows that may still arrive, whatever the status:
    it got no response, or one that leaves its outcome open.
    """

    batch: int
    entity: str
    keys: tuple[str, ...]
    status: Status
    code: int = 0
    error: str | None = None
    message: str | None = None
    earlier: Status | None = None
    may_arrive: bool = False

    @property
    def was_written(self) -> bool:
        """Whether the broker accepted these rows from any attempt of the run."""
        return Status.ACCEPTED in {self.status, self.earlier}

    @property
    def may_be_written(self) -> bool:
        """Whether the broker may have accepted these rows from the run, which is unknown."""
        return not self.was_written and Status.UNKNOWN in {self.status, self.earlier}


DONE = frozenset({Status.ACCEPTED, Status.ALREADY})
"""The statuses of rows whose planned value the cluster stores."""
AS_INTENDED = DONE | {Status.HELD, Status.WAITING}
"""The statuses of rows without a failure: written, or skipped because of a hold or a guard."""
