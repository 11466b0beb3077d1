"""The load that the recordings were made of: throttled clients of two real brokers.

`python -m tests.usage.scenario FOLDER` runs it for six minutes and leaves the data of a real
Prometheus, and times.json, in FOLDER. recording.py tells how to record its API from them.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.model.quotas.entity import Entity
from tests.usage.lab import start_exported, start_prometheus
from tests.writing import State, write

ENCODED = "svc:pay/1* x"
"""A user whose name Kafka percent-encodes."""
QUOTED = 'anon app:1*/ü, "q"=1'
"""A client id that JMX quotes."""
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
SECONDS = 360
DOWN, UP, FINER = 150, 190, 250
"""When broker 2 freezes, when it goes on, and when bob gets a quota of another level."""
PASSWORD = "secret"
TOPIC = "load"


def _entity(user: str | None = "", client_id: str | None = "") -> str:
    """Return the text of an entity; None is the default."""
    parts = {"user": user, "client-id": client_id}
    return Entity.of({kind: name for kind, name in parts.items() if name != ""}).text


QUOTAS: State = {
    _entity("alice"): {"producer_byte_rate": 500_000, "consumer_byte_rate": 300_000},
    _entity("bob", "web"): {"producer_byte_rate": 100_000},
    _entity("carol", None): {"producer_byte_rate": 100_000},
    _entity(None, "etl"): {"producer_byte_rate": 150_000},
    _entity(client_id="shared"): {"producer_byte_rate": 200_000},
    _entity(client_id=None): {"producer_byte_rate": 1_000_000},
    _entity(ENCODED): {"producer_byte_rate": 250_000},
    _entity("gina"): {"request_percentage": 1},
    _entity("nobody"): {"producer_byte_rate": 100_000},
}
LATER: State = {_entity("bob"): {"producer_byte_rate": 100_000}}
"""What is set in the second FINER."""


class Client(NamedTuple):
    """A producer: bytes per second as a function of the second, sent evenly to both brokers."""

    user: str
    client_id: str
    rate: Callable[[float], float]


CLIENTS = (
    Client("alice", "app", lambda _: 900_000),
    Client("bob", "web", lambda at: 500_000 if at % 60 < 20 else 60_000),
    Client("bob", "other", lambda _: 40_000),
    Client("carol", "x1", lambda _: 50_000),
    Client("dave", "etl", lambda _: 600_000),
    Client("dave", "shared", lambda _: 100_000),
    Client("erin", "shared", lambda _: 120_000),
    Client("gina", "many", lambda _: 200_000),
    Client(ENCODED, "pay", lambda _: 240_000),
    Client("frank", QUOTED, lambda _: 60_000),
    Client("idle", "rare", lambda at: 20_000 if at < 60 else 0),
)


def _produce(address: str, client: Client, started: float) -> None:
    producer = Producer(
        {
            **_login(address, client.user),
            "client.id": client.client_id,
            "acks": "1",
            "linger.ms": 20,
            "compression.type": "none",
            "batch.size": 20_000,
            "queue.buffering.max.kbytes": 20_000,
            "log_level": 0,
        }
    )
    line = b"x" * 1_000
    times = [number / 5 for number in range(SECONDS * 5)]
    for at, until in pairwise(times):
        for number in range(int(client.rate(at) * (until - at) / len(line))):
            with suppress(BufferError, KafkaException):
                producer.produce(TOPIC, line, partition=number % 2)
        producer.poll(0)
        time.sleep(max(0.0, started + until - time.monotonic()))


def _consume(address: str, started: float) -> None:
    consumer = Consumer(
        {**_login(address, "alice"), "client.id": "reader", "group.id": "g", "log_level": 0}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0), TopicPartition(TOPIC, 1, 0)])
    while time.monotonic() < started + SECONDS:
        with suppress(KafkaException):
            consumer.consume(1_000, 0.5)
    consumer.close()


def _login(address: str, user: str) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }


def config() -> BrokerConfig:
    """Return two brokers that any user of SCRAM may log in to."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return BrokerConfig(
        cluster_id=CLUSTER_ID,
        nodes=2,
        listeners={"SASL": "SASL_PLAINTEXT"},
        properties={
            "listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{module} required;",
        },
    )


def prepare(broker: RunningBroker) -> None:
    """Create the users and the topic, with a partition on each broker, and set the quotas."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap()})
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    users = sorted({client.user for client in CLIENTS})
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, scram, PASSWORD.encode()) for user in users
    ]
    for done in admin.alter_user_scram_credentials(changes).values():
        done.result(30)
    topic = NewTopic(
        TOPIC, 2, replica_assignment=[[1], [2]], config={"retention.bytes": str(64 << 20)}
    )
    for done in admin.create_topics([topic]).values():
        done.result(30)
    set_quotas(broker, QUOTAS)


def set_quotas(broker: RunningBroker, state: State) -> None:
    """Set quotas, and wait until each broker has them."""
    text = f"bootstrap.servers={broker.bootstrap()}"
    connection = Connection.parse(text, name="orders", source="a test")
    with open_cluster(connection, cluster_id=None) as cluster:
        write(cluster, state)


@contextmanager
def running_clients(address: str, started: float) -> Iterator[None]:
    """Run all clients in threads until SECONDS after `started`."""
    threads = [
        threading.Thread(target=_produce, args=(address, client, started), daemon=True)
        for client in CLIENTS
    ]
    threads.append(threading.Thread(target=_consume, args=(address, started), daemon=True))
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(60)


def run(folder: Path) -> None:
    """Run the load, and write the times of what happened."""
    times: dict[str, float] = {}
    with start_exported(config(), folder / "kafka") as exported:
        broker = exported.broker
        prepare(broker)
        targets = {f"broker-{node}": address for node, address in exported.exporters.items()}
        with start_prometheus(folder / "prometheus", targets, 5):
            started = time.monotonic()
            times["started"] = time.time()

            def wait_until(second: float, name: str) -> None:
                time.sleep(max(0.0, started + second - time.monotonic()))
                times[name] = time.time()
                sys.stderr.write(f"{name}\n")

            with running_clients(broker.bootstrap("SASL"), started):
                wait_until(DOWN, "down")
                broker.nodes[1].send(signal.SIGSTOP)
                wait_until(UP, "up")
                broker.nodes[1].send(signal.SIGCONT)
                wait_until(FINER, "finer")
                set_quotas(broker, LATER)
                wait_until(SECONDS, "ended")
            time.sleep(5)
    (folder / "times.json").write_text(json.dumps(times, indent=1), encoding="utf-8")


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
