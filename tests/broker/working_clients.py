"""Producers and consumers that run as fast as a broker lets them, and their rates."""

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import count

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaProducer

from quota_ops.lab.kafka.broker import RunningBroker
from tests.broker_config import password_of

PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
BURST, MEASURED = 2.0, 3.0
"""Seconds that are left out, and seconds that count."""
RECORD = b"x" * 1000
BATCH = 4000
ON_THE_WIRE = 1040
"""Bytes of a record with its share of the batch's and the request's head."""
FULL, TARGET = "full", "target"
Turns = Generator[int]
"""A client at work: after each turn, how many records the broker has taken or given."""


@dataclass(frozen=True)
class Client:
    """A client that produces or consumes at full speed, and the level that should limit it."""

    key: str
    user: str
    client_id: str
    level: str | None


def fill(servers: str) -> None:
    """Create the topics, and write 3 MB where consumers read, in small batches."""
    quiet: dict[str, str | int | float | bool] = {"bootstrap.servers": servers, "log_level": 0}
    admin = AdminClient(quiet)
    for created in admin.create_topics([NewTopic(FULL, 1, 1), NewTopic(TARGET, 1, 1)]).values():
        created.result()
    producer = Producer(quiet | {"batch.size": BATCH, "linger.ms": 5})
    for _ in range(3000):
        producer.produce(FULL, RECORD)
    assert producer.flush(30) == 0


def settings(quick: RunningBroker, client: Client) -> dict[str, str | int]:
    """Return the settings with which a client authenticates and names itself."""
    return {
        "bootstrap.servers": quick.bootstrap("SASL"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": client.user,
        "sasl.password": password_of(client.user),
        "client.id": client.client_id,
        "log_level": 0,
    }


def produced(quick: RunningBroker, client: Client) -> Turns:
    """Produce without end, in small batches, so that the rate is even."""
    taken: Counter[str] = Counter()
    few = {"batch.size": BATCH, "max.in.flight": 1, "queue.buffering.max.messages": 100}
    producer = Producer(settings(quick, client) | few | {"linger.ms": 0, "acks": 1})
    try:
        while True:
            try:
                producer.produce(TARGET, RECORD, on_delivery=lambda *_: taken.update("r"))
            except BufferError:
                producer.poll(0.01)
            producer.poll(0)
            yield taken["r"]
    finally:
        producer.purge()
        producer.flush(1)


def consumed(quick: RunningBroker, client: Client) -> Turns:
    """Consume without end, one small batch at a time."""
    few = {"max.partition.fetch.bytes": 1, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings(quick, client) | few)
    came = 0
    try:
        consumer.assign([TopicPartition(FULL, 0, 0)])
        while True:
            came += len(consumer.consume(100, 0.02))
            yield came
    finally:
        consumer.close()


def produced_without_client_id(quick: RunningBroker, client: Client) -> Turns:
    """Produce without end as a client without a client id, which librdkafka always sends."""
    producer = KafkaProducer(
        bootstrap_servers=quick.bootstrap("SASL"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username=client.user,
        sasl_plain_password=password_of(client.user),
        client_id="",
        batch_size=BATCH,
    )
    try:
        for taken in count():
            yield taken
            producer.send(TARGET, RECORD).get(10)
    finally:
        producer.close()


def measure(quick: RunningBroker, client: Client) -> float:
    """Return the bytes per second of a client, from the end of the opening burst on."""
    work: Callable[[RunningBroker, Client], Turns]
    work = produced if client.key == PRODUCE else consumed
    if not client.client_id:
        work = produced_without_client_id
    start, before = time.monotonic() + BURST, 0
    with closing(work(quick, client)) as turns:
        for done in turns:
            now = time.monotonic()
            if now < start:
                before = done
            if now > start + MEASURED:
                break
    return (done - before) * ON_THE_WIRE / (now - start)
