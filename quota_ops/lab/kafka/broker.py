"""Starts a real Kafka, and waits until it responds."""

import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from quota_ops.jvm.pinned_jars import Progress
from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.config import PLAIN, BrokerConfig, Ports, server_properties
from quota_ops.lab.kafka.jars import pins_of
from quota_ops.lab.kafka.node import LOG, Jvm, RunningNode, read_node, save_node, stop_nodes
from quota_ops.lab.process import StoppedAtEnd
from quota_ops.model.errors import ClusterTrouble, InvalidInput

_START_SECONDS = 60.0
_RETRIES = 2


class _PortTaken(ClusterTrouble):
    """Another process took a chosen port before Kafka started."""


@dataclass(frozen=True, kw_only=True)
class RunningBroker(StoppedAtEnd):
    """A running Kafka; as a context manager it stops at the end of the block."""

    config: BrokerConfig
    nodes: tuple[RunningNode, ...]

    def bootstrap(self, listener: str = PLAIN) -> str:
        """Return the bootstrap.servers of a listener."""
        return ",".join(node.address(listener) for node in self.nodes)

    @property
    def pid(self) -> int:
        """The process id of the first node."""
        return self.nodes[0].pid

    @property
    def log(self) -> Path:
        """The log of the first node."""
        return self.nodes[0].log

    def stop(self) -> None:
        """Stop every node, and return when the processes are gone."""
        stop_nodes(self.nodes)


def start_broker(
    config: BrokerConfig,
    home: Path,
    *,
    detached: bool = False,
    progress: Progress = lambda _done, _all: None,
    recording: Path | None = None,
) -> RunningBroker:
    """Start a Kafka in `home`, one folder per node, and return it when every node responds.

    Existing data in `home` is reused, and so are its ports if they are free. The processes end
    with this one, even if it is killed, unless `detached`. `progress` counts fetched jars. Each
    program writes its class archive to `recording` when it exits normally.
    Raises MissingTool without Java or jars; ClusterTrouble, with the end of the log, when a node
    does not start within a minute.
    """
    jvm = Jvm.of(config, progress, recording)
    for _ in range(_RETRIES):
        with suppress(_PortTaken):
            return _start(jvm, config, home.resolve(), detached=detached)
    return _start(jvm, config, home.resolve(), detached=detached)


def _start(jvm: Jvm, config: BrokerConfig, home: Path, *, detached: bool) -> RunningBroker:
    ports = find_free_ports(config, home)
    folders = {node: home / f"node-{node}" for node in ports}
    for node, folder in folders.items():
        _prepare(folder, config, server_properties(config, node, ports))
    jvm.format(tuple(folders.values()), config)
    nodes = []
    for node, folder in folders.items():
        process = jvm.launch(folder, detached=detached)
        nodes.append(
            RunningNode(
                id=node,
                cluster_id=config.cluster_id,
                version=config.version,
                pid=process.pid,
                mark=process.mark,
                ports=ports[node],
                started=time.time(),
                folder=folder,
                launcher=process.launcher,
            )
        )
        save_node(nodes[-1])
    broker = RunningBroker(config=config, nodes=tuple(nodes))
    try:
        _wait_until_ready(broker)
    except BaseException:
        broker.stop()
        raise
    return broker


def find_free_ports(config: BrokerConfig, home: Path) -> dict[int, Ports]:
    """Return free ports for each node by its id: those of its last start in `home`, if free.

    Another process may take one before Kafka does.
    """
    with ExitStack() as sockets:

        def reserve(wanted: int) -> int:
            bound = sockets.enter_context(socket.socket())
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(wanted > 0))
            try:
                bound.bind(("127.0.0.1", wanted))
            except OSError:
                return reserve(0)
            return int(bound.getsockname()[1])

        found: dict[int, Ports] = {}
        for node in range(1, config.nodes + 1):
            last = read_node(home / f"node-{node}")
            known = last.ports if last else {}
            found[node] = {name: reserve(known.get(name, 0)) for name in config.protocols}
        return found


def _prepare(folder: Path, config: BrokerConfig, properties: str) -> None:
    meta = folder / config.data / "meta.properties"
    if meta.exists() and f"cluster.id={config.cluster_id}" not in meta.read_text().split():
        raise InvalidInput(
            f"{folder} contains the data of a different cluster than {config.cluster_id}.",
            "Remove that folder to start with an empty cluster.",
        )
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # the properties may contain passwords
    (folder / "server.properties").write_text(properties, encoding="ascii")
    log_settings = pins_of(config.version).log_settings
    (folder / log_settings.name).write_bytes(log_settings.read_bytes())
    if (folder / LOG).exists():
        (folder / LOG).replace(folder / f"{LOG}.previous")


def _wait_until_ready(broker: RunningBroker) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not _is_ready(broker):
        for node in broker.nodes:
            if not node.alive:
                raise _explain_death(node)
        if time.monotonic() > deadline:
            raise ClusterTrouble(
                f"Kafka did not respond within {_START_SECONDS:.0f} s; "
                f"the end of {broker.log}:\n{broker.nodes[0].log_tail()}"
            )
        time.sleep(0.05)


def _is_ready(broker: RunningBroker) -> bool:
    return all(is_port_open(node.ports[PLAIN]) for node in broker.nodes) and can_describe(
        broker.bootstrap(), nodes=len(broker.nodes)
    )


def _explain_death(node: RunningNode) -> ClusterTrouble:
    tail = node.log_tail()
    message = f"Kafka ended while it was starting; the end of {node.log}:\n{tail}"
    return _PortTaken(message) if "Address already in use" in tail else ClusterTrouble(message)


def is_port_open(port: int) -> bool:
    """Return whether a process listens on a port of 127.0.0.1."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def can_describe(bootstrap: str, nodes: int) -> bool:
    """Return whether the cluster has that many nodes, and each can describe quotas."""
    text = f"bootstrap.servers={bootstrap}"
    connection = Connection.parse(text, name="sandbox", source="the sandbox")
    try:
        with open_cluster(connection, cluster_id=None, timeout=5.0) as cluster:
            for broker in cluster.brokers:
                cluster.describe(broker.id)
            return len(cluster.brokers) == nodes
    except ClusterTrouble:
        return False
