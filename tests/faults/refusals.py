"""Requests that are rejected as a whole because of one entity in them."""

from collections.abc import Sequence

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import preflight
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.runs.outcome import EntityResponse
from tests.faults.scene import AFTER, BEFORE, Scene
from tests.faults.table import Seen, fault

POISONED = "user=u7"


class Gateway(Cluster):
    """A broker behind a proxy that rejects a whole request for one name, and validates anything."""

    def apply(self, alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        """Reject, or forward."""
        if any(alteration.entity.text == POISONED for alteration in alterations):
            return tuple(
                EntityResponse(alteration.entity, 44, "POLICY_VIOLATION", None)
                for alteration in alterations
            )
        return super().apply(alterations)


@fault("apply", "a proxy rejects every request that contains one entity", quick=True)
def one_spoils_all(scene: Scene) -> Seen:
    """One poisoned entity costs only itself."""
    address = f"bootstrap.servers={scene.lab.bootstrap}"
    connection = Connection.parse(address, name="demo", source="a test")
    gateway = Gateway(connection, preflight(connection, None), 30.0)
    said = scene.reconcile(connect=lambda: gateway)
    gateway.close()
    stored = scene.lab.stored()
    expected = {one: limits for one, limits in AFTER.items() if one != POISONED}
    assert stored == expected
    assert POISONED not in BEFORE
    return Seen(scene.holds(), said, scene.next_run())
