"""The outcome of each entity of a batch, with the complete response of the broker."""

from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.entity import Entity


class EntityResponse(NamedTuple):
    """A broker's answer for one entity; code 0 is Kafka's NONE, message its own words."""

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
    NOT_SENT = "not_sent"
    """The run stopped before its turn."""


class Outcome(NamedTuple):
    """The outcome of one entity in one batch; `keys` are its rows.

    `earlier` is what an earlier attempt of the run did to rows that this one did not write:
    ACCEPTED, or UNKNOWN. Null where no attempt sent them before.
    """

    batch: int
    entity: str
    keys: tuple[str, ...]
    status: Status
    code: int = 0
    error: str | None = None
    message: str | None = None
    earlier: Status | None = None

    @property
    def was_written(self) -> bool:
        """Whether the broker accepted these rows from any attempt of the run."""
        return Status.ACCEPTED in {self.status, self.earlier}

    @property
    def may_be_written(self) -> bool:
        """Whether it is unknown if the broker accepted these rows from the run."""
        return not self.was_written and Status.UNKNOWN in {self.status, self.earlier}


DONE = frozenset({Status.ACCEPTED, Status.ALREADY})
"""The cluster stores the planned value."""
AS_INTENDED = DONE | {Status.HELD}
"""No failure: written, or skipped because of a hold."""
