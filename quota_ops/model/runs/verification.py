"""Verification: whether each broker stores the expected values."""

from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct

from quota_ops.model.clusters.cluster_facts import Absent
from quota_ops.model.quotas.rows import Key, Targets

BOOTSTRAP = -1
"""The broker id to use if only the bootstrap address is known, as in Kafka's own clients."""

BACK_OR_GONE = (
    "Verify again when it is back. If it will not come back, remove it with kafka-cluster.sh "
    "unregister (Apache Kafka 3.3 and later), or list it in cluster.yaml under retired_brokers."
)
"""The remedy for an absent broker."""
ONLY_BOOTSTRAP = (
    "If only the bootstrap address is reachable, for example over a private link, set verify: "
    "bootstrap in cluster.yaml."
)


class Verdict(StrEnum):
    """The result for one row on the brokers that responded."""

    VERIFIED = "verified"
    DIFFERS = "differs"
    UNANSWERED = "unanswered"
    """No broker responded at all."""


class RowVerdict(NamedTuple):
    """The verdict on one row; `seen` has the other values, each with the broker that stores it."""

    entity: str
    key: str
    expected: float | None
    verdict: Verdict
    seen: tuple[tuple[int, float | None], ...] = ()

    @property
    def id(self) -> Key:
        """Return entity and key."""
        return Key(self.entity, self.key)


class Settlement(NamedTuple):
    """What a later run found on the cluster for the rows whose write got no response."""

    by: str
    """The run that looked."""
    found: Targets
    """The stored values; None for a row that the cluster did not store."""


class BrokerResult(Struct, frozen=True):
    """The last result of one broker: how many rows are lagging, or why it did not respond.

    With `bootstrap`, only the bootstrap address was queried; `broker` is the id of the broker that
    responded, BOOTSTRAP if that is unknown. An `absent` broker belongs to the cluster and was not
    queried; `error` is the reason, and continues a sentence that begins with the broker. `compared`
    is how many of its rows were compared, `skipped` how many the run neither wrote nor compared.
    """

    broker: int
    address: str
    queries: int
    lagging: int | None
    error: str | None = None
    bootstrap: bool = False
    absent: bool = False
    compared: int = 0
    skipped: int = 0

    @classmethod
    def of_absent(cls, broker: Absent) -> Self:
        """Return the result of an absent broker, which was not queried."""
        return cls(broker.id, broker.address or "", 0, None, broker.why, absent=True)

    @property
    def named(self) -> str:
        """The queried broker and its address: `broker 3 at kafka-3:9094`."""
        if not self.bootstrap:
            return f"broker {self.broker}" + (f" at {self.address}" if self.address else "")
        who = "" if self.broker == BOOTSTRAP else f" (broker {self.broker})"
        return f"the bootstrap address {self.address}{who}"

    @property
    def agrees(self) -> bool:
        """Whether it responded, and stores the expected value of every compared row."""
        return self.lagging == 0
