"""Builds the requests of the quota calls, parses their responses, and names the permissions.

Requests are built from tuples: kafka-python's message objects take six times as long to build.
Source of the permissions: KafkaApis.handleDescribeClientQuotasRequest and
ControllerApis.handleAlterClientQuotas.
"""

import shlex
from collections.abc import Iterable, Sequence
from sys import intern
from typing import Any

from kafka.errors import kafka_errors

from quota_ops.kafka.client.kafka_python import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import InvalidInput, NotAuthorized
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import MAX_NAME_BYTES, USER, Entity, text_of
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.model.runs.outcome import EntityResponse

PING_USER = "quota-ops ping"
"""The user whose quotas ping queries; it never writes any."""

_EXACT, _DEFAULT = 0, 1
"""The match types of a component. Source: DescribeClientQuotasRequest."""

_NAMES = {0: "NONE", -1: "UNKNOWN_SERVER_ERROR"}
"""Kafka's names that differ in kafka-python. Source: org.apache.kafka.common.protocol.Errors."""


def build_describe_request(entity: Entity | None = None) -> Any:
    """Build a DescribeClientQuotas request for one entity, or by default for every entity."""
    components = [
        (kind, _DEFAULT if name is None else _EXACT, name)
        for kind, name in (entity.parts if entity else ())
    ]
    return DescribeClientQuotasRequest(components=components, strict=entity is not None)


def build_ping_request() -> Any:
    """Build a DescribeClientQuotas request for a user without quotas, for a small response."""
    return build_describe_request(Entity(((USER, PING_USER),)))


def build_alter_request(alterations: Sequence[Alteration], *, validate_only: bool) -> Any:
    """Build an AlterClientQuotas request; the value None clears a key.

    Raises ValueError when an entity occurs twice, because Kafka would apply the first and refuse
    both (ClientQuotaControlManager); InvalidInput when a name is too long for the protocol,
    because the broker would close the connection instead of responding.
    """
    if len({alteration.entity for alteration in alterations}) < len(alterations):
        raise ValueError("an entity occurs twice in one request")
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


def parse_quotas(entries: Iterable[Any]) -> tuple[StoredQuota, ...]:
    """Return the described entries as rows, in the broker's order, which has no meaning."""
    return tuple(
        StoredQuota(entity, intern(value.key), value.value + 0.0)
        for entry in entries
        for entity in (Entity(_parts(entry)),)
        for value in entry.values
    )


def parse_values(entries: Iterable[Any]) -> dict[Key, float]:
    """Return the described values by entity and key.

    They share no object with the response: its memory could not be returned while they are used.
    """
    return {
        Key(text, intern(value.key)): value.value + 0.0
        for entry in entries
        for text in (text_of(_parts(entry)),)
        for value in entry.values
    }


def parse_responses(entries: Iterable[Any]) -> tuple[EntityResponse, ...]:
    """Return the responses to an alteration, in the broker's order, not the request's."""
    return tuple(
        EntityResponse(
            Entity(_parts(entry)),
            entry.error_code,
            get_error_name(entry.error_code),
            entry.error_message,
        )
        for entry in entries
    )


def get_error_name(code: int) -> str:
    """Return Kafka's name for an error code, or `UNKNOWN_` and the number if it has no name."""
    if code in _NAMES:
        return _NAMES[code]
    return str(kafka_errors[code].message) if code in kafka_errors else f"UNKNOWN_{code}"


def _parts(entry: Any) -> tuple[tuple[str, str | None], ...]:
    if len(entry.entity) == 1:  # true of most entities: saves a hundred thousand sorts
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
                raise InvalidInput(
                    f"{kind} {name!a}: the name cannot be encoded in UTF-8."
                ) from None
            if size > MAX_NAME_BYTES:
                raise InvalidInput(
                    f"{kind} {name[:40]!r}...: the name takes {size:,} bytes; "
                    f"Kafka's protocol carries at most {MAX_NAME_BYTES:,}."
                )


CLUSTER_AUTHORIZATION_FAILED = 31
"""The error code for a principal that lacks the operation."""

DESCRIBE = "Describe"
"""The operation needed to list users and ACLs."""
DESCRIBE_CONFIGS = "DescribeConfigs"
ALTER_CONFIGS = "AlterConfigs"
"""The operation needed to alter quotas; it implies DescribeConfigs."""

_CALLS = {DESCRIBE_CONFIGS: "describe", ALTER_CONFIGS: "alter"}


def make_authorization_error(connection: Connection, operation: str) -> NotAuthorized:
    """Return the error for a principal that is not authorized on the Cluster resource."""
    return NotAuthorized(
        f"connection {connection.name}: {connection.principal} is not authorized to "
        f"{_CALLS[operation]} client quotas: it is missing {operation} on the resource Cluster. "
        "Nothing was changed.",
        f"An administrator grants it with:\n    {format_grant_command(connection, operation)}",
    )


def format_grant_command(connection: Connection, operation: str) -> str:
    """Return the kafka-acls.sh command that grants an operation on the resource Cluster."""
    words = ("--add", "--allow-principal", connection.principal, "--operation", operation)
    servers = connection.properties["bootstrap.servers"]
    return (
        f"kafka-acls.sh --bootstrap-server {shlex.quote(servers)} "
        f"--command-config ADMIN.properties {shlex.join(words)} --cluster"
    )
