"""The brokers that share limits of the whole cluster, and the topics that each leads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

PREFIX = "*"
"""The end of a text that names every topic that begins with it: `payments-*`."""


class UnknownBrokersError(ValueError):
    """The leaders of some topics are unknown; the text explains why, and `remedy` what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class Placement(NamedTuple):
    """The brokers of a cluster by id, with the topics that each leads a partition of.

    A broker counts while it is registered, and a partition counts for its preferred leader. So a
    restart changes nothing. `leads` is None if nobody knows which topics the brokers lead.
    """

    brokers: tuple[int, ...]
    leads: Mapping[int, Sequence[str]] | None

    @classmethod
    def of_count(cls, brokers: int) -> Self:
        """Return this number of brokers, without the topics that they lead."""
        return cls(tuple(range(1, brokers + 1)), None)

    @classmethod
    def from_json(cls, values: Mapping[Any, Any]) -> Self:
        """Parse the output of `as_json`.

        Raises AttributeError, TypeError or ValueError for others.
        """
        leads = {int(broker): tuple(topics) for broker, topics in values.items()}
        if not all(isinstance(topic, str) for topics in leads.values() for topic in topics):
            raise TypeError("a topic is not text")
        if any(isinstance(topics, str) for topics in values.values()):
            raise TypeError("the topics of a broker are not a list")
        return cls(tuple(sorted(leads)), leads)

    def as_json(self) -> dict[str, list[str]]:
        """Return the topics of each broker, by its id."""
        leads = self.leads or {}
        return {str(broker): sorted(leads.get(broker, ())) for broker in self.brokers}

    def find_sharing(self, topics: str | None) -> tuple[int, ...]:
        """Return the brokers that share a limit: all, or those that lead one of these topics.

        `topics` are names and prefixes, separated by commas. Raises UnknownBrokersError if one of
        them is no topic, or if it is unknown which brokers lead them.
        """
        if not self.brokers:
            raise UnknownBrokersError(
                "The brokers of the cluster are unknown",
                "Query the cluster, or reconcile it once: each run records the brokers.",
            )
        if topics is None:
            return self.brokers
        if self.leads is None:
            raise UnknownBrokersError(
                f"Which brokers lead {topics.replace(',', ', ')} is unknown",
                "Pass --brokers a file with the topics of each broker: {1: [orders], 2: []}.",
            )
        names = topics.split(",")
        led = {topic for of_broker in self.leads.values() for topic in of_broker}
        for name in names:
            if not any(matches_topic(name, topic) for topic in led):
                is_prefix = name.endswith(PREFIX)
                raise UnknownBrokersError(
                    f"No topic begins with {name[:-1]}" if is_prefix else f"No topic is {name}",
                    "Correct topics, create the topic, or permit quota-ops to describe it.",
                )
        return tuple(
            broker
            for broker in self.brokers
            if any(matches_topic(n, topic) for n in names for topic in self.leads.get(broker, ()))
        )


def matches_topic(name: str, topic: str) -> bool:
    """Return whether a name or a prefix means a topic."""
    return topic.startswith(name[:-1]) if name.endswith(PREFIX) else topic == name


def list_topics(names: Iterable[str | None]) -> list[str]:
    """Return the topics of several limits (names and prefixes) without duplicates."""
    return sorted({topic for text in names if text is not None for topic in text.split(",")})
