"""Sends audit records to a Kafka topic: all in-sync replicas acknowledge, or the send times out."""

import logging
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from quota_ops.connections.deadlines import call_within
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.preflight import SILENT, build_options
from quota_ops.model.moment import timed

_log = logging.getLogger(__name__)
PATIENCE = 5.0
"""Seconds to wait for the topic, which must not delay a run for long."""


def produce(connection: Connection, topic: str, key: str, records: Sequence[bytes]) -> str | None:
    """Send records to a topic; return why some were not delivered, or None when all were.

    Takes at most PATIENCE plus one second.
    """
    failures: list[str] = []
    try:
        with timed(_log, logging.INFO, f"audit topic {topic}, {len(records)} records"):
            left = call_within(
                PATIENCE + 1, lambda: _flush(connection, topic, key, records, failures)
            )
    except TimeoutError:
        left = len(records)
    except KafkaException as error:
        left = len(records)
        failures.insert(0, error.args[0].str())
    if left == 0:
        return None
    why = failures[0] if failures else f"no response within {PATIENCE:g} s"
    return f"{left} of {len(records)} not delivered: {why}"


def _flush(
    connection: Connection, topic: str, key: str, records: Sequence[bytes], failures: list[str]
) -> int:
    """Send the records, and return how many were not acknowledged."""
    acknowledged: list[Message] = []

    def record_delivery(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(message)
        else:
            failures.append(error.str())

    options: dict[str, Any] = {
        **build_options(connection),
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "gzip",
        "delivery.timeout.ms": int(PATIENCE * 1000),
        "error_cb": lambda error: failures.append(error.str()),  # also of what SILENT drops
    }
    producer = Producer(options, logger=SILENT)
    for record in records:
        producer.produce(topic, record, key, on_delivery=record_delivery)
    producer.flush(PATIENCE)
    producer.purge()
    producer.flush(0)
    return len(records) - len(acknowledged)
