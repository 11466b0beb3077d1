"""A producer that sends as much as it is offered, and shows how the broker throttles it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Producer

_MESSAGE = bytes(16_384)


class Second(NamedTuple):
    """What a producer did in about a second: bytes per second delivered, and its last throttle.

    `throttle` is in seconds, as the broker responds; 0 without one.
    """

    rate: float
    throttle: float


class Load:
    """A running producer; each `measure` waits a second."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._delivered = 0
        self._throttle = 0.0

    def count_delivered(self, error: Any, _message: Any) -> None:
        """Count a message that the broker has stored."""
        if error is None:
            self._delivered += len(_MESSAGE)

    def note_throttle(self, event: Any) -> None:
        """Keep how long the broker throttles the producer."""
        self._throttle = float(event.throttle_time)

    def measure(self) -> Second:
        """Return what the producer does in the next second."""
        before, since, self._throttle = self._delivered, time.monotonic(), 0.0
        self.ended.wait(1.0)
        delivered, seconds = self._delivered - before, time.monotonic() - since
        return Second(delivered / seconds, self._throttle)


@contextmanager
def run_load(bootstrap: str, client_id: str, topic: str, offered: float) -> Iterator[Load]:
    """Produce up to `offered` bytes per second to a topic in a thread until the block ends."""
    load = Load()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "linger.ms": 5,
            "batch.size": 65_536,
            "max.in.flight.requests.per.connection": 1,
            "queue.buffering.max.kbytes": 1024,
            "throttle_cb": load.note_throttle,
            "log_level": 0,
        }
    )

    def produce() -> None:
        started, sent = time.monotonic(), 0
        while not load.ended.is_set():
            ahead = sent / offered - (time.monotonic() - started)
            try:
                if ahead <= 0:
                    producer.produce(topic, _MESSAGE, on_delivery=load.count_delivered)
                    sent += len(_MESSAGE)
            except BufferError:  # the broker takes less than it is offered
                started, sent = time.monotonic(), 0
                producer.poll(0.05)
            producer.poll(min(max(ahead, 0.0), 0.05))

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield load
    finally:
        load.ended.set()
        thread.join(10)
        producer.purge()
