"""Throttling that a real broker did, beside the range that was predicted from use before it."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, ThrottleEvent, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.model.quotas.entity import USER, Entity
from quota_ops.model.usage.digest import DELAYS
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.sql.embedded_usage import find_delays
from quota_ops.stages.plan.throttling import Group, SeriesName, make_shares
from quota_ops.store.places import parquet
from quota_ops.usage.samples import read_samples
from quota_ops.usage.source import SeriesNames, UsageSource
from tests.usage.conftest import connect
from tests.usage.lab import start_exported, start_prometheus
from tests.usage.scenario import CLUSTER_ID, set_quotas

pytestmark = pytest.mark.matrix
SECONDS = 90
LINE = b"x" * 1_000
PRODUCED, CONSUMED = "producer_byte_rate", "consumer_byte_rate"
LEVELS = [random.Random(7).uniform(1e5, 9e5) for _ in range(SECONDS // 10 + 1)]  # noqa: S311 - a load
NOISE = 12.0
"""Seconds by which a range may be missed: a rate is a mean over eleven seconds."""


class Load(NamedTuple):
    """What a user sends in each second of the load, and the limit it gets."""

    key: str
    limit: float
    rate: Callable[[float], float]


LOADS = {
    "blocks": Load(PRODUCED, 800_000, lambda at: 1_600_000 if at % 30 > 20 else 400_000),
    "bursts": Load(PRODUCED, 500_000, lambda at: 2_500_000 if at % 15 < 3 else 100_000),
    "stairs": Load(PRODUCED, 700_000, lambda at: 200_000 + 900_000 * at / SECONDS),
    "levels": Load(PRODUCED, 450_000, lambda at: LEVELS[int(at // 10)]),
    "reader": Load(CONSUMED, 400_000, lambda at: 900_000 if at % 45 < 20 else 100_000),
}


def login(address: str, user: str) -> dict[str, str]:
    """Return the settings of a client."""
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": "secret",
    }


def run_loads(address: str) -> dict[str, float]:
    """Run all loads for SECONDS; return for how many seconds the broker throttled each user."""
    throttled = dict.fromkeys(LOADS, 0.0)
    started = time.monotonic()

    def count(user: str) -> Callable[[ThrottleEvent], None]:
        def add(event: ThrottleEvent) -> None:
            left = max(0.0, started + SECONDS - time.monotonic())
            throttled[user] += min(event.throttle_time, left)

        return add

    def produce(user: str, name: str) -> None:
        settings = {"linger.ms": 20, "queue.buffering.max.kbytes": 200_000, "log_level": 0}
        producer = Producer(login(address, name) | settings | {"throttle_cb": count(user)})
        for at, until in pairwise(number / 5 for number in range(SECONDS * 5 + 1)):
            for _ in range(int(LOADS[user].rate(at) * (until - at) / len(LINE))):
                with suppress(BufferError, KafkaException):
                    producer.produce(user, LINE)
            producer.poll(0)
            time.sleep(max(0.0, started + until - time.monotonic()))
        producer.purge()

    def consume(user: str) -> None:
        settings = {"group.id": user, "auto.offset.reset": "latest", "log_level": 0}
        consumer = Consumer(login(address, user) | settings | {"throttle_cb": count(user)})
        consumer.assign([TopicPartition(user, 0)])
        while time.monotonic() < started + SECONDS:
            consumer.consume(1_000, 0.2)
        consumer.close()

    threads = [
        threading.Thread(target=produce, args=(user, user if load.key == PRODUCED else "writer"))
        for user, load in LOADS.items()
    ]
    threads += [
        threading.Thread(target=consume, args=(user,))
        for user, load in LOADS.items()
        if load.key == CONSUMED
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
    return throttled


def test_what_brokers_did_is_in_the_predicted_range(tmp_path: Path) -> None:
    """Five shapes of load, one read, are throttled for a time within the range of a review."""
    users = dict.fromkeys([*LOADS, "writer"], "secret")
    config = BrokerConfig(cluster_id=CLUSTER_ID, listeners={"SASL": "SASL_PLAINTEXT"}, users=users)
    with start_exported(config, tmp_path / "kafka") as exported:
        admin = AdminClient({"bootstrap.servers": exported.broker.bootstrap()})
        for done in admin.create_topics([NewTopic(user, 1) for user in LOADS]).values():
            done.result(30)
        measuring = {"user=<default>": {PRODUCED: 1e11, CONSUMED: 1e11}}
        set_quotas(exported.broker, measuring)
        targets = {"b1": exported.exporters[1]}
        with start_prometheus(tmp_path / "prometheus", targets) as server:
            time.sleep(3)
            start = datetime.now(UTC)
            unthrottled = run_loads(exported.broker.bootstrap("SASL"))
            end = datetime.now(UTC)
            source = UsageSource.of(
                UsagePolicy("monitoring", match=(("cluster", "orders"),), step=1),
                connect(server.url),
            )
            ranges = {
                user: predict(source, user, start, end - timedelta(seconds=1)) for user in LOADS
            }
        limits = {f"user={user}": {load.key: load.limit} for user, load in LOADS.items()}
        set_quotas(exported.broker, measuring | limits)
        time.sleep(12)
        throttled = run_loads(exported.broker.bootstrap("SASL"))

    assert unthrottled == dict.fromkeys(LOADS, 0.0)
    assert all(throttled.values())
    found = {user: (least, throttled[user], most) for user, (least, most) in ranges.items()}
    wrong = [
        user
        for user, (least, did, most) in found.items()
        if not least - NOISE <= did <= most + NOISE
    ]
    assert wrong == [], found


def predict(source: UsageSource, user: str, start: datetime, end: datetime) -> tuple[float, float]:
    """Return the range that a review shows for the limit of a user, in seconds."""
    load = LOADS[user]
    samples = read_samples(
        source, ["b1"], load.key, start, end, selection={SeriesNames(user, None)}
    )
    group = Group(Entity.of({USER: user}), load.limit, None, (SeriesName(user, None),))
    found = find_delays(*samples, make_shares(load.key, [group]), source.step)
    (row,) = parquet.read_rows(DELAYS, found)
    return row.above, row.delayed
