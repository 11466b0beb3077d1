"""Brokers that a test may kill, freeze and start again."""

import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer

from kafka.admin import KafkaAdminClient

from quota_ops.lab.kafka.broker import RunningBroker, can_describe, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.node import Jvm, RunningNode
from tests.broker.freezing import freeze
from tests.broker_config import generate_cluster_id

FENCING = 15.0
"""Seconds in which a silent broker is fenced, at the most (broker.session.timeout.ms is 9)."""

_UNREGISTER_BROKER = 64


class Machine:
    """The nodes of a broker, by their ids, whatever state they are in."""

    def __init__(self, broker: RunningBroker) -> None:
        self.broker = broker
        self.nodes: dict[int, RunningNode] = {node.id: node for node in broker.nodes}
        self._timers: list[Timer] = []

    @property
    def leader(self) -> int:
        """Return the node whose controller leads."""
        admin = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap())
        quorum = admin.describe_metadata_quorum()
        admin.close()
        return int(quorum["topics"][0]["partitions"][0]["leader_id"])

    def kill(self, *ids: int) -> None:
        """End nodes by SIGKILL."""
        for number in ids or self.nodes:
            self.nodes[number].send(signal.SIGKILL)
            self.nodes[number].stop()  # returns when it is gone

    def start(self) -> None:
        """Start every stopped node in its place, and wait until all describe."""
        jvm = Jvm.of(self.broker.config, lambda _done, _all: None)
        for number, node in self.nodes.items():
            if not node.alive:
                process = jvm.launch(node.folder, detached=False)
                self.nodes[number] = replace(node, pid=process.pid, launcher=process.launcher)
        while not can_describe(self.broker.bootstrap(), nodes=len(self.nodes)):
            assert all(node.alive for node in self.nodes.values())
            time.sleep(0.05)

    def unregister(self, number: int) -> None:
        """Remove a stopped broker from the cluster, as kafka-cluster.sh unregister does."""
        body = struct.pack(">hhihBiB", _UNREGISTER_BROKER, 0, 1, -1, 0, number, 0)
        host, _, port = next(
            node.address() for node in self.nodes.values() if node.alive
        ).partition(":")
        with socket.create_connection((host, int(port)), timeout=10.0) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as answer:
                size, _, _, _, error = struct.unpack(">iiBih", answer.read(15))
                assert (error, len(answer.read(size - 11))) == (0, size - 11)

    def restart(self) -> None:
        """Stop every node as an administrator would, and start it again."""
        for node in self.nodes.values():
            node.stop()
        self.start()

    def freeze(self, *ids: int, seconds: float | None = None) -> None:
        """Stop nodes by SIGSTOP, for some seconds if given: they accept connections, no more."""
        freeze(*(self.nodes[number] for number in ids or self.nodes))
        if seconds is not None:
            self._timers.append(Timer(seconds, self.thaw))
            self._timers[-1].start()

    def thaw(self) -> None:
        """Resume every node."""
        for node in self.nodes.values():
            node.send(signal.SIGCONT)

    @contextmanager
    def healed(self) -> Iterator["Machine"]:
        """Return the machine for one play; at its end every node runs again."""
        try:
            yield self
        finally:
            for timer in self._timers:
                timer.join()
            self._timers.clear()
            self.thaw()
            if not all(node.alive for node in self.nodes.values()):
                self.start()

    def close(self) -> None:
        """Stop the nodes that were started here; the others belong to the broker."""
        for node in self.nodes.values():
            if node not in self.broker.nodes:
                with suppress(ProcessLookupError):
                    node.stop(2.0)


@contextmanager
def start_machine(nodes: int, home: Path) -> Iterator[Machine]:
    """Start a cluster of so many nodes; at the end none of them is left."""
    config = BrokerConfig(cluster_id=generate_cluster_id(), nodes=nodes)
    with start_broker(config, home) as running:
        machine = Machine(running)
        try:
            yield machine
        finally:
            machine.close()
    assert not any(node.alive for node in running.nodes)
