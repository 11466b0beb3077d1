"""Audit records to a Kafka topic: each taken once by every replica in sync, or given up in time."""

import logging
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from quota_ops.kafka.client.deadlines import within
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import confluent_options
from quota_ops.kafka.preflight import login_by_token
from quota_ops.model.moment import timed

_log = logging.getLogger(__name__)
PATIENCE = 5.0
"""Seconds that a topic is given; it must never hold up a run."""


def produce(connection: Connection, topic: str, key: str, records: Sequence[bytes]) -> str | None:
    """Why a topic did not take every record, in words; None when it took them all.

    Never takes longer than PATIENCE and a second.
    """
    failures: list[str] = []
    try:
        with timed(_log, logging.INFO, f"audit topic {topic}, {len(records)} records"):
            left = within(PATIENCE + 1, lambda: _flush(connection, topic, key, records, failures))
    except TimeoutError:
        left = len(records)
    except KafkaException as error:
        left = len(records)
        failures.insert(0, error.args[0].str())
    if left == 0:
        return None
    why = failures[0] if failures else f"no answer in {PATIENCE:g} s"
    return f"{left} of {len(records)} not taken: {why}"


def _flush(
    connection: Connection, topic: str, key: str, records: Sequence[bytes], failures: list[str]
) -> int:
    """How many records are not known to be taken."""
    taken: list[Message] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            taken.append(message)
        else:
            failures.append(error.str())

    options: dict[str, Any] = {
        **confluent_options(connection.properties),
        **login_by_token(connection),
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "gzip",
        "delivery.timeout.ms": int(PATIENCE * 1000),
        "error_cb": lambda error: failures.append(error.str()),
        "enable.metrics.push": False,
    }
    producer = Producer(options, logger=_Silent())
    for record in records:
        producer.produce(topic, record, key, on_delivery=delivered)
    producer.flush(PATIENCE)
    producer.purge()
    producer.flush(0)
    return len(records) - len(taken)


class _Silent:
    """Takes librdkafka's log lines: what matters of them is told by `error_cb` too."""

    def log(self, *_line: object) -> None:
        """Keep nothing."""
