"""The configuration of a sandbox Kafka, and the server.properties that it produces."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from quota_ops.lab.kafka.jars import DEFAULT_VERSION

PLAIN = "PLAINTEXT"
CONTROLLER = "CONTROLLER"


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """A Kafka on free ports of 127.0.0.1; each node is both a broker and a KRaft controller.

    The listener PLAINTEXT always exists. `listeners` adds others, from a listener's name to its
    security protocol (`{"SASL": "SASL_PLAINTEXT"}`). `super_users` turns on Kafka's
    StandardAuthorizer; clients of PLAINTEXT are super users too.
    `properties` are further server properties (ASCII), and override the generated ones. `heap` is
    the -Xmx of each node's JVM. `advertised` maps a listener to the address, `host:port`, that it
    advertises instead of its own.
    """

    cluster_id: str
    nodes: int = 1
    listeners: Mapping[str, str] = field(default_factory=dict)
    super_users: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    advertised: Mapping[str, str] = field(default_factory=dict)
    heap: str = "512m"
    version: str = DEFAULT_VERSION

    @property
    def data(self) -> str:
        """The data folder of a node: one per version, because Kafka cannot read newer data."""
        return f"data-{self.version}"

    @property
    def protocols(self) -> dict[str, str]:
        """The security protocol of every listener; the controller's is last."""
        return {PLAIN: "PLAINTEXT", **self.listeners, CONTROLLER: "PLAINTEXT"}


Ports = Mapping[str, int]
"""One node's ports, by the listener's name."""


def server_properties(config: BrokerConfig, node: int, ports: Mapping[int, Ports]) -> str:
    """Return the server.properties of one node; `ports` has those of every node by its id."""
    address = {name: f"{name}://127.0.0.1:{port}" for name, port in ports[node].items()}
    advertised = address | {name: f"{name}://{own}" for name, own in config.advertised.items()}
    properties = {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.listener.names": CONTROLLER,
        "controller.quorum.voters": ",".join(
            f"{each}@127.0.0.1:{ports[each][CONTROLLER]}" for each in ports
        ),
        "listeners": ",".join(address.values()),
        "advertised.listeners": ",".join(
            advertised[name] for name in advertised if name != CONTROLLER
        ),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in config.protocols.items()
        ),
        "inter.broker.listener.name": PLAIN,
        "log.dirs": config.data,
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # By default the controller writes a record twice a second: a third of an idle node's CPU.
        "metadata.max.idle.interval.ms": "0",
        # By default each write waits 25 ms for others.
        "controller.quorum.append.linger.ms": "0",
        # By default the log cleaner fills 128 MB with zeros: a fifth of the CPU time of a start.
        "log.cleaner.dedupe.buffer.size": "2097152",
        **_list_authorizer(config),
        **config.properties,
    }
    escaped = {key: value.replace("\\", "\\\\") for key, value in properties.items()}
    return "".join(f"{key}={value}\n" for key, value in escaped.items())


def _list_authorizer(config: BrokerConfig) -> dict[str, str]:
    if not config.super_users:
        return {}
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The nodes connect to each other through the listeners without authentication.
        "super.users": ";".join(f"User:{name}" for name in ("ANONYMOUS", *config.super_users)),
    }
