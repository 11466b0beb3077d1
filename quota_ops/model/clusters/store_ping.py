"""The result of a ping of a run store: races, permissions and times."""

from dataclasses import dataclass

from quota_ops.model.errors import InvalidInput, Refused


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on the store: whether it succeeds, and the seconds of each success.

    `error` is why it failed. An operation that was not tried has neither times nor an error.
    """

    name: str
    seconds: tuple[float, ...] = ()
    error: str | None = None

    @property
    def is_authorized(self) -> bool | None:
        """Whether it succeeded; None if it was not tried."""
        return None if self.error is None and not self.seconds else self.error is None


@dataclass(frozen=True, slots=True)
class StorePing:
    """What a run store does, and what these credentials are authorized to do with it.

    `winners` has, for each number that `racers` writers tried to create at the same moment, how
    many of them succeeded; it is empty if files cannot be created. `left` is the address of the
    folder with test files that could not be deleted. `is_empty` is whether the store had nothing in
    it before: it is new, or its address has a typing error. `clock_lead` is how many seconds this
    machine's clock is ahead of the store's; 0 if they agree.
    """

    address: str
    operations: tuple[Operation, ...]
    racers: int = 0
    winners: tuple[int, ...] = ()
    left: str | None = None
    is_empty: bool = False
    clock_lead: float = 0.0

    @property
    def is_safe(self) -> bool | None:
        """Whether each number had exactly one winner; None if there was no race."""
        return set(self.winners) == {1} if self.winners else None

    @property
    def exit_code(self) -> int:
        """2 if the store is not safe to write, 1 if an operation fails, else 0."""
        if self.is_safe is False:
            return InvalidInput.exit_code
        return Refused.exit_code if any(operation.error for operation in self.operations) else 0
