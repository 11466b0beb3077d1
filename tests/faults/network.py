"""A network that is cut: before a request arrives, before its response does, and for good."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from quota_ops.kafka.client.description import Broker, ClusterDescription
from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.runs.chain import CHAINS, READ_ONLY, RESUMED
from tests.broker.stage_runs import After
from tests.broker.wire import Wire
from tests.faults.scene import Scene
from tests.faults.table import Seen, fault


@contextmanager
def wired(scene: Scene) -> Iterator[tuple[Cluster, Wire]]:
    """Return the broker behind a wire that loses the given bytes, once."""
    wire = Wire(scene.lab.bootstrap)
    wire.once = True
    address = f"bootstrap.servers=127.0.0.1:{wire.port}"
    connection = Connection.parse(address, name="demo", source="a test")
    brokers = (Broker(1, "127.0.0.1", wire.port),)
    cluster = Cluster(connection, ClusterDescription(scene.lab.cluster.cluster_id, brokers), 2.0)
    try:
        yield cluster, wire
    finally:
        cluster.close()
        wire.remove()


def cut_in_apply(scene: Scene, what: str) -> Seen:
    """Lose the second request of a run, or its response."""
    with wired(scene) as (cluster, wire):
        cut = partial(setattr, wire, "cut_at", what)
        said = scene.reconcile(connect=lambda: cluster, progress=After(1, cut))
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "network cut before a request arrives", quick=True)
def request_lost(scene: Scene) -> Seen:
    """The row is described, found missing, and sent again."""
    return cut_in_apply(scene, "request")


@fault("apply", "network cut after a request arrived, before its response", quick=True)
def answer_lost(scene: Scene) -> Seen:
    """The row is described, found there, and not sent again."""
    return cut_in_apply(scene, "answer")


@fault("apply", "network cut permanently between two requests", quick=True)
def cut_for_good(scene: Scene) -> Seen:
    """Rows that were certainly not sent are not sent later either, until another run."""
    scene.hurry()
    with wired(scene) as (cluster, wire):
        said = scene.reconcile(connect=lambda: cluster, progress=After(1, wire.remove))
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "network cut permanently while a request is in flight", quick=True)
def cut_for_good_after_request(scene: Scene) -> Seen:
    """Rows whose fate cannot be known are reported as unknown, and the next run settles them."""
    scene.hurry()
    with wired(scene) as (cluster, wire):
        wire.once = False
        cut = partial(setattr, wire, "cut_at", "answer")
        said = scene.reconcile(connect=lambda: cluster, progress=After(1, cut))
    return Seen(scene.holds(), said, scene.next_run())


def double_in_apply(scene: Scene, what: str) -> Seen:
    """Let the second request of a run and all after it, or their responses, arrive twice."""
    with wired(scene) as (cluster, wire):
        double = partial(setattr, wire, "double_at", what)
        said = scene.reconcile(connect=lambda: cluster, progress=After(1, double))
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "each request after the first arrives twice, and has two responses")
def request_doubled(scene: Scene) -> Seen:
    """An alteration sets a value, so the copy changes nothing."""
    return double_in_apply(scene, "request")


@fault("apply", "each response after the first arrives twice")
def answer_doubled(scene: Scene) -> Seen:
    """No response is taken for that of a later request."""
    return double_in_apply(scene, "answer")


@fault("describe", "network cut before the response", quick=True)
def describe_lost(scene: Scene) -> Seen:
    """A read is retried."""
    with wired(scene) as (cluster, wire):
        cluster.describe()
        wire.cut_at = "answer"
        said = scene.reconcile(connect=lambda: cluster)
    return Seen(scene.holds(), said, scene.next_run())


@fault("validate", "network cut before the response")
def validate_lost(scene: Scene) -> Seen:
    """A second validation writes nothing."""
    with wired(scene) as (cluster, wire):
        run = scene.prepare(READ_ONLY[:4], connect=lambda: cluster)
        wire.cut_at = "answer"
        said = scene.go_on(run, ("validate", *RESUMED))
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "network cut before the response")
def verify_lost(scene: Scene) -> Seen:
    """A broker that does not respond is queried again until the deadline."""
    with wired(scene) as (cluster, wire):
        run = scene.prepare(CHAINS["apply"], connect=lambda: cluster)
        wire.cut_at = "answer"
        said = scene.go_on(run, ("verify", "report"))
    return Seen(scene.holds(), said, scene.next_run())
