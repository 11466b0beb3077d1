"""Requests and responses of the quota calls, to and from the model's values, and their permissions.

Tuples stand for kafka-python's message objects, which take six times as long to build.
Source of the permissions: KafkaApis.handleDescribeClientQuotasRequest and
ControllerApis.handleAlterClientQuotas.
"""

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from kafka.errors import kafka_errors

from quota_ops.kafka.client.kafka_python import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.model.alteration import Alteration
from quota_ops.model.entity import MAX_NAME_BYTES, USER, Entity, text_of
from quota_ops.model.errors import InvalidInput, NotAuthorized
from quota_ops.model.outcome import EntityAnswer
from quota_ops.model.rows import Key, StoredQuota

PROBE = "quota-ops ping"
"""A user that is asked about, and never written."""

_EXACT, _DEFAULT = 0, 1
"""How a component is matched. Source: DescribeClientQuotasRequest."""

_NAMES = {0: "NONE", -1: "UNKNOWN_SERVER_ERROR"}
"""Names that kafka-python has otherwise. Source: org.apache.kafka.common.protocol.Errors."""


def describe_request(entity: Entity | None = None) -> Any:
    """A DescribeClientQuotas for one entity; without, for everything: no component, not strict."""
    components = [
        (kind, _DEFAULT if name is None else _EXACT, name)
        for kind, name in (entity.parts if entity else ())
    ]
    return DescribeClientQuotasRequest(components=components, strict=entity is not None)


def probe_request() -> Any:
    """A DescribeClientQuotas for a user that is not there: a small answer, or a refusal."""
    return describe_request(Entity(((USER, PROBE),)))


def alter_request(alterations: Sequence[Alteration], *, validate_only: bool) -> Any:
    """An AlterClientQuotas; None clears a key.

    Raises ValueError when an entity is in it twice, because Kafka would do the first and refuse
    both (ClientQuotaControlManager); InvalidInput when a name is longer than the protocol carries,
    because the broker would hang up instead of answering.
    """
    if len({alteration.entity for alteration in alterations}) < len(alterations):
        raise ValueError("an entity stands twice in one request")
    _check_names(alterations)
    return AlterClientQuotasRequest(
        entries=[
            (
                list(alteration.entity.parts),
                [(key, value or 0.0, value is None) for key, value in alteration.changes],
            )
            for alteration in alterations
        ],
        validate_only=validate_only,
    )


def stored_quotas(entries: Iterable[Any]) -> tuple[StoredQuota, ...]:
    """The described entries as rows, in the broker's order, which means nothing."""
    return tuple(
        StoredQuota(entity, value.key, value.value)
        for entry in entries
        for entity in (Entity(_parts(entry)),)
        for value in entry.values
    )


def stored_values(entries: Iterable[Any]) -> dict[Key, float]:
    """The described entries by the text of their entity, and their key: half the work of rows."""
    return {
        Key(text, value.key): value.value
        for entry in entries
        for text in (text_of(_parts(entry)),)
        for value in entry.values
    }


def entity_answers(entries: Iterable[Any]) -> tuple[EntityAnswer, ...]:
    """The answers to an alteration, in the broker's order, which is not the request's."""
    return tuple(
        EntityAnswer(
            Entity(_parts(entry)),
            entry.error_code,
            error_name(entry.error_code),
            entry.error_message,
        )
        for entry in entries
    )


def error_name(code: int) -> str:
    """Kafka's name of an error code, `INVALID_REQUEST`; a new one is `UNKNOWN` and its number."""
    if code in _NAMES:
        return _NAMES[code]
    return str(kafka_errors[code].message) if code in kafka_errors else f"UNKNOWN_{code}"


def _parts(entry: Any) -> tuple[tuple[str, str | None], ...]:
    if len(entry.entity) == 1:  # as most: a hundred thousand are not sorted one by one
        (part,) = entry.entity
        return ((part.entity_type, part.entity_name),)
    return tuple(sorted([(part.entity_type, part.entity_name) for part in entry.entity]))


def _check_names(alterations: Iterable[Alteration]) -> None:
    for alteration in alterations:
        for kind, name in alteration.entity.parts:
            if name is None:
                continue
            try:
                size = len(name.encode())
            except UnicodeEncodeError:
                raise InvalidInput(f"{kind} {name!a}: not a text that UTF-8 can hold.") from None
            if size > MAX_NAME_BYTES:
                raise InvalidInput(
                    f"{kind} {name[:40]!r}...: the name takes {size:,} bytes; "
                    f"Kafka's protocol carries at most {MAX_NAME_BYTES:,}."
                )


CLUSTER_AUTHORIZATION_FAILED = 31
"""The error code of a request whose login lacks the operation."""

DESCRIBE = "Describe"
"""To list users and ACLs."""
DESCRIBE_CONFIGS = "DescribeConfigs"
ALTER_CONFIGS = "AlterConfigs"
"""It implies DescribeConfigs."""

_CALLS = {DESCRIBE_CONFIGS: "describe", ALTER_CONFIGS: "alter"}


def not_authorized(connection: Connection, operation: str) -> NotAuthorized:
    """The error of a login that lacks an operation on the resource Cluster."""
    return NotAuthorized(
        f"cluster {connection.name}: {connection.principal} may not {_CALLS[operation]} client "
        f"quotas: it needs {operation} on the resource Cluster. Nothing was changed.",
        f"An administrator grants it by:\n    {grant_command(connection, operation)}",
    )


def grant_command(connection: Connection, operation: str) -> str:
    """The command line of Kafka's own tool that grants an operation on the resource Cluster."""
    words = ("--add", "--allow-principal", connection.principal, "--operation", operation)
    servers = connection.properties["bootstrap.servers"]
    return (
        f"kafka-acls.sh --bootstrap-server {shlex.quote(servers)} "
        f"--command-config ADMIN.properties {shlex.join(words)} --cluster"
    )
