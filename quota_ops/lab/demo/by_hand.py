"""What people do to quotas outside Git, as they would with kafka-configs.sh."""

from collections.abc import Sequence
from typing import NamedTuple

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.alteration import Alteration
from quota_ops.model.entity import Entity
from quota_ops.model.errors import Refused
from quota_ops.model.quota import format_limit
from quota_ops.report.screen import Line, Span, Tone

MiB = 1024.0 * 1024


class ByHand(NamedTuple):
    """One limit set by hand, cleared when the value is None, and why somebody did it."""

    entity: str
    key: str
    value: float | None
    why: str


BEFORE_US = (
    ByHand("user=4711", "consumer_byte_rate", 2e6, "a till that was slow in 2019"),
    ByHand("user=grafana", "consumer_byte_rate", 3 * MiB, "nobody remembers"),
)
"""Set before there was a repository."""

AT_NIGHT = (
    ByHand("user=<default>", "request_percentage", 200.0, "a batch was stuck: double for all"),
    ByHand("user=bob", "request_percentage", 20.0, "bob called at three"),
    ByHand("user=carol", "producer_byte_rate", 6 * MiB, "carol called too"),
    ByHand("user=dave", "request_percentage", None, "dave left the company"),
)
"""Set after the first reconcile, each on a row of ours."""

IN_A_HURRY = ByHand("user=alice", "producer_byte_rate", 20 * MiB, "alice is in a hurry")
"""Set after everything was as agreed."""


def set_by_hand(connection: Connection, quotas: Sequence[ByHand]) -> None:
    """Write quotas to a cluster and nothing to Git; Refused when the broker refuses one."""
    with open_cluster(connection, cluster_id=None) as cluster:
        answers = cluster.apply(
            [Alteration(Entity.parse(one.entity), ((one.key, one.value),)) for one in quotas]
        )
    if refusals := [f"{one.entity.text}: {one.message}" for one in answers if one.code != 0]:
        raise Refused(f"the broker refused what was set by hand: {'; '.join(refusals)}")


BY_HAND = ("entity", "key", "set to", "because")
"""The headings above `by_hand_cells`."""


def by_hand_cells(one: ByHand) -> Line:
    """A limit as people see it."""
    return (
        Span(one.entity, Tone.STRONG),
        Span(one.key),
        Span(format_limit(one.key, one.value), Tone.CHANGE),
        Span(one.why, Tone.CONTEXT),
    )
