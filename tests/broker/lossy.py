"""A network between a run and a cluster that delays requests, and loses requests and responses."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from quota_ops.model.errors import NoResponse
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.runs.outcome import EntityResponse
from tests.writing import settle

PROMPT, UNANSWERED, IN_FLIGHT, TWICE = "prompt", "unanswered", "in flight", "twice"
"""What becomes of a request: it arrives and is answered; it arrives, and the response is lost; it
has not arrived when the client gives up; it arrives unanswered, and a copy is still in flight."""


@dataclass
class Lossy:
    """A cluster behind such a network; `fates` are those of its requests, the rest are prompt.

    A function as a fate is called before the request arrives, which is answered: the request was
    delayed while something else happened. `deliver` lets the requests in flight arrive.
    """

    cluster: Any
    fates: Iterator[str | Callable[[], object]]
    in_flight: list[Sequence[Alteration]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    def apply(self, alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        """Let a request meet its fate."""
        fate = next(self.fates, PROMPT)
        if callable(fate):
            fate()
        if fate in {IN_FLIGHT, TWICE}:
            self.in_flight.append(alterations)
        if fate == IN_FLIGHT:
            raise NoResponse("no response arrived")
        responses: tuple[EntityResponse, ...] = self.cluster.apply(alterations)
        if fate in {UNANSWERED, TWICE}:
            settle(self.cluster)
            raise NoResponse("no response arrived")
        return responses

    def deliver(self) -> None:
        """Let the requests in flight arrive, in the order in which they were sent."""
        while self.in_flight:
            self.cluster.apply(self.in_flight.pop(0))
        settle(self.cluster)
