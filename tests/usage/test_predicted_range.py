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
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.sql.embedded_usage import find_delays
from quota_ops.stages.plan.throttling import Group, list_shares
from quota_ops.stages.plan.use import read_samples
from quota_ops.usage.source import UsageSource
from tests.broker_config import SASL, plain_logins
from tests.usage.conftest import connect
from tests.usage.lab import start_exported, start_prometheus
from tests.usage.scenario import CLUSTER_ID, set_quotas

SECONDS = 75
LINE = b"x" * 1_000
PRODUCED, CONSUMED = "producer_byte_rate", "consumer_byte_rate"
LEVELS = [random.Random(7).uniform(2e5, 11e5) for _ in range(SECONDS // 10 + 1)]  # noqa: S311 - a load
NOISE = 12.0
"""Seconds by which a range may be missed: a rate is a mean over eleven seconds."""


class Load(NamedTuple):
    """What is sent in each second, and the limit of the user who sends or reads it."""

    key: str
    limit: float
    rate: Callable[[float], float]


LOADS = {
    "blocks": Load(PRODUCED, 600_000, lambda at: 1_600_000 if at % 35 > 20 else 300_000),
    "bursts": Load(PRODUCED, 400_000, lambda at: 2_000_000 if at % 15 < 4 else 100_000),
    "stairs": Load(PRODUCED, 500_000, lambda at: 200_000 + 900_000 * at / SECONDS),
    "levels": Load(PRODUCED, 400_000, lambda at: LEVELS[int(at // 10)]),
    "reader": Load(CONSUMED, 500_000, lambda at: 1_500_000 if at % 40 < 15 else 200_000),
    "bulk": Load(CONSUMED, 300_000, lambda at: 25_000_000 if at % 35 < 0.2 else 0),
    "more": Load(CONSUMED, 300_000, lambda at: 40_000_000 if at % 35 < 0.2 else 0),
}
"""What consumers read is produced by a user without a limit."""


class Throttled:
    """For how long the broker throttled the connection of a user, in seconds of a load."""

    def __init__(self, started: float) -> None:
        self.seconds = 0.0
        self._until, self._end = started, started + SECONDS

    def add(self, event: ThrottleEvent) -> None:
        """Add the time of a response that is in none of the earlier ones."""
        now = time.monotonic()
        until = min(now + event.throttle_time, self._end)
        self.seconds += max(0.0, until - max(now, self._until))
        self._until = max(self._until, until)


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
    started = time.monotonic()
    throttled = {user: Throttled(started) for user in LOADS}

    def produce(user: str) -> None:
        settings = {"linger.ms": 20, "queue.buffering.max.kbytes": 200_000, "log_level": 0}
        sender = login(address, "writer" if LOADS[user].key == CONSUMED else user)
        producer = Producer(sender | settings | {"throttle_cb": throttled[user].add})
        for at, until in pairwise(number / 5 for number in range(SECONDS * 5 + 1)):
            for _ in range(int(LOADS[user].rate(at) * (until - at) / len(LINE))):
                with suppress(BufferError, KafkaException):
                    producer.produce(user, LINE)
            producer.poll(0)
            time.sleep(max(0.0, started + until - time.monotonic()))
        producer.purge()

    def consume(user: str) -> None:
        settings = {"group.id": user, "log_level": 0, "throttle_cb": throttled[user].add}
        consumer = Consumer(login(address, user) | settings)
        low, high = consumer.get_watermark_offsets(TopicPartition(user, 0), 30)
        consumer.assign([TopicPartition(user, 0, max(low, high))])
        while time.monotonic() < started + SECONDS:
            consumer.consume(10_000, 0.2)
        consumer.close()

    readers = [user for user, load in LOADS.items() if load.key == CONSUMED]
    threads = [threading.Thread(target=produce, args=(user,)) for user in LOADS]
    threads += [threading.Thread(target=consume, args=(user,)) for user in readers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
    return {user: found.seconds for user, found in throttled.items()}


@pytest.mark.matrix
def test_what_brokers_did_is_in_the_predicted_range(tmp_path: Path) -> None:
    """Four producers are throttled for a time within the range of a review.

    Consumers may be throttled for longer: a throttled fetch is sent again, and may wait again.
    """
    users = dict.fromkeys([*LOADS, "writer"], "secret")
    config = BrokerConfig(cluster_id=CLUSTER_ID, listeners=SASL, properties=plain_logins(users))
    with start_exported(config, tmp_path / "kafka") as exported:
        admin = AdminClient({"bootstrap.servers": exported.broker.bootstrap()})
        for done in admin.create_topics([NewTopic(user, 1) for user in LOADS]).values():
            done.result(30)
        # Brokers count the use of a resource only while it has a quota.
        measuring = {"user=<default>": {PRODUCED: 1e11, CONSUMED: 1e11}}
        set_quotas(exported.broker, measuring)
        targets = {"b1": exported.exporters[1]}
        with start_prometheus(tmp_path / "prometheus", targets) as server:
            time.sleep(3)
            start = datetime.now(UTC)
            unthrottled = run_loads(exported.broker.bootstrap("SASL"))
            unlimited = Time(start, datetime.now(UTC) - timedelta(seconds=1))
            policy = UsagePolicy("monitoring", match=(("cluster", "orders"),), step=1)
            source = UsageSource.of(policy, connect(server.url))
            ranges = {user: predict(source, user, unlimited) for user in LOADS}
        limits = {f"user={user}": {load.key: load.limit} for user, load in LOADS.items()}
        set_quotas(exported.broker, measuring | limits)
        time.sleep(12)
        throttled = run_loads(exported.broker.bootstrap("SASL"))

    found = {user: (least, throttled[user], most) for user, (least, most) in ranges.items()}
    assert unthrottled == dict.fromkeys(LOADS, 0.0)
    assert all(0 < least <= most < SECONDS for least, _, most in found.values()), found
    wrong = [
        user
        for user, (least, did, most) in found.items()
        if did < least - NOISE or (did > most + NOISE and LOADS[user].key == PRODUCED)
    ]
    assert wrong == [], found


def predict(source: UsageSource, user: str, time: Time) -> tuple[float, float]:
    """Return the range that a review shows for the limit of a user, in seconds."""
    load, series = LOADS[user], SeriesNames(user, None)
    samples = read_samples(source, load.key, {series}, time)
    group = Group(Entity.of({USER: user}), load.limit, None, (series,))
    (row,) = find_delays(*samples[:2], list_shares(load.key, [group]), source.step)
    return row.least, row.delayed
