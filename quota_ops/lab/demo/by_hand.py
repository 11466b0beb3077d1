"""Changes to quotas outside Git, as people make them with kafka-configs.sh."""

from collections.abc import Sequence
from typing import NamedTuple

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import Refused
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit
from quota_ops.report.outline.layout import Line, Span, Tone

MiB = 1024.0 * 1024


class ByHand(NamedTuple):
    """A limit that is set by hand, or cleared if the value is None, and the reason."""

    entity: str
    key: str
    value: float | None
    why: str


BEFORE_GIT = (ByHand("client-id=grafana", "consumer_byte_rate", 30 * MiB, "no reason on record"),)
"""The limit set before the repository existed."""

AT_NIGHT = (
    ByHand("user=<default>", "request_percentage", 200.0, "a batch was stuck: doubled for all"),
    ByHand("user=bob", "request_percentage", 20.0, "bob called at 3 am"),
    ByHand("user=carol", "producer_byte_rate", 6 * MiB, "carol called too"),
    ByHand("user=dave", "request_percentage", None, "dave left the company"),
    ByHand("user=4711", "consumer_byte_rate", 2e6, "a till was slow"),
)
"""The limits set after the first reconcile, each but the last on a managed row."""

LAST_MINUTE = ByHand("user=alice", "producer_byte_rate", 20 * MiB, "alice has a deadline")
"""The limit set after the cluster matched Git."""


def set_by_hand(connection: Connection, quotas: Sequence[ByHand]) -> None:
    """Write quotas to a cluster, but not to Git. Raises Refused when the broker rejects one."""
    with open_cluster(connection, cluster_id=None) as cluster:
        responses = cluster.apply(
            [
                Alteration(Entity.parse(quota.entity), ((quota.key, quota.value),))
                for quota in quotas
            ]
        )
    if refusals := [
        f"{response.entity.text}: {response.message}"
        for response in responses
        if response.code != 0
    ]:
        raise Refused(f"the broker rejected a change by hand: {'; '.join(refusals)}")


BY_HAND = ("entity", "key", "set to", "because")
"""The headings above `by_hand_cells`."""


def by_hand_cells(quota: ByHand) -> Line:
    """Return the cells of a change by hand."""
    return (
        Span(quota.entity, Tone.STRONG),
        Span(quota.key),
        Span(format_limit(quota.key, quota.value), Tone.CHANGE),
        Span(quota.why, Tone.CONTEXT),
    )
