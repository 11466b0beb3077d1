"""Writing outside Git, so that every later read sees it."""

from collections.abc import Mapping

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.plans.plan import exact
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import Key
from tests.looking import seen_in_time

Limits = Mapping[str, float | None]
State = Mapping[str, Limits]
"""Values by the text of the entity, and by key; None for a key that is cleared."""


def alterations(state: State) -> tuple[Alteration, ...]:
    """Return the alterations that bring these keys to these values."""
    return tuple(
        Alteration(
            Entity.parse(entity),
            tuple((key, None if value is None else float(value)) for key, value in limits.items()),
        )
        for entity, limits in state.items()
    )


def write(cluster: Cluster, state: State) -> None:
    """Set and clear, and wait until describe shows it and every earlier write."""
    assert {answer.code for answer in cluster.apply(alterations(state))} <= {0}
    wait_until_shown(cluster, state)


def wait_until_shown(cluster: Cluster, state: State) -> None:
    """Describe until these rows have their values, whatever else the cluster stores."""
    wanted = {
        Key(alteration.entity.text, key): exact(value)
        for alteration in alterations(state)
        for key, value in alteration.changes
    }

    def shown() -> dict[Key, str]:
        stored = cluster.describe_values()
        return {row: exact(stored.get(row)) for row in wanted}

    assert seen_in_time(shown, wanted) == wanted


def settle(cluster: Cluster) -> None:
    """Wait until every write is visible: changes are visible in the order of the requests."""
    for value in (1.0, None):
        write(cluster, {_LAST: {"producer_byte_rate": value}})


def empty(cluster: Cluster) -> None:
    """Clear everything, including recent writes that are not visible yet."""
    write(cluster, {_LAST: {"producer_byte_rate": 1.0}})
    state: dict[str, dict[str, None]] = {}
    for entity, key in cluster.describe_values():
        state.setdefault(entity, {})[key] = None
    write(cluster, state)


_LAST = "user=last-of-all"
