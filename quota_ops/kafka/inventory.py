"""The clients that a cluster itself knows: its users, its ACLs, and members of consumer groups."""

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from quota_ops.connections.deadlines import call_within
from quota_ops.kafka.client.broker_client import build_client
from quota_ops.kafka.client.description import ClusterDescription
from quota_ops.kafka.client.kafka_python import (
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
)
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.facts import EVERY_ACL, map_nodes
from quota_ops.kafka.preflight import SILENT, build_options
from quota_ops.model.moment import timed
from quota_ops.model.text import counted

_log = logging.getLogger(__name__)
UNKNOWN = "<unknown>"
"""The name of a user or client id that the cluster does not show."""
PATIENCE = 30.0
"""Seconds to wait for each source."""
_GROUPS = "members of consumer groups"
_USER, _EVERY = "User:", "*"
NO_AUTHORIZER = "the cluster has no authorizer"
_WHY = {31: "you are not authorized (this needs Describe on the cluster)", 54: NO_AUTHORIZER}
"""The reasons of CLUSTER_AUTHORIZATION_FAILED and SECURITY_DISABLED."""


class ClientSource(NamedTuple):
    """A source of clients: its clients as (user, client id), and why any are missing."""

    name: str
    clients: frozenset[tuple[str, str]]
    skipped: str | None = None


def read_clients(connection: Connection, cluster: ClusterDescription) -> tuple[ClientSource, ...]:
    """Read the clients from each source; one that is refused or does not respond is skipped."""
    with timed(_log, logging.INFO, f"connection {connection.name}: clients"):
        return (*_read_users_and_acls(connection, cluster), _read_groups(connection))


def _read_users_and_acls(
    connection: Connection, cluster: ClusterDescription
) -> Iterator[ClientSource]:
    """Yield the sources by kafka-python: librdkafka aborts the process if it may not read users."""
    client = build_client(connection, cluster.endpoints, PATIENCE)
    node = map_nodes(client, cluster.endpoints)[cluster.endpoints[0].id]
    try:
        for name, request, parse in (
            # An empty list requests every user.
            ("SCRAM users", DescribeUserScramCredentialsRequest(users=[]), _parse_users),
            ("ACLs", DescribeAclsRequest(**EVERY_ACL), _parse_principals),
        ):
            future = client.send(node, request)
            client.poll(timeout_ms=PATIENCE * 1000, future=future)
            if not future.succeeded():
                why = str(future.exception or f"no response within {PATIENCE:g} s")
                yield ClientSource(name, frozenset(), why)
            elif code := future.value.error_code:
                yield ClientSource(name, frozenset(), _WHY.get(code, f"error code {code}"))
            else:
                names = parse(future.value)
                yield ClientSource(name, frozenset((user, UNKNOWN) for user in names))
    finally:
        client.close()


def _parse_users(response: Any) -> Iterator[str]:
    return (result.user for result in response.results)


def _parse_principals(response: Any) -> Iterator[str]:
    principals = {acl.principal for resource in response.resources for acl in resource.acls}
    for principal in principals - {f"{_USER}{_EVERY}"}:
        if principal.startswith(_USER):
            yield principal.removeprefix(_USER)


def _read_groups(connection: Connection) -> ClientSource:
    client = AdminClient(build_options(connection), logger=SILENT)
    try:
        return call_within(PATIENCE + 1, lambda: _read_members(client))
    except KafkaException as error:
        return ClientSource(_GROUPS, frozenset(), error.args[0].str())
    except TimeoutError:
        return ClientSource(_GROUPS, frozenset(), f"no response within {PATIENCE:g} s")


def _read_members(client: AdminClient) -> ClientSource:
    """Return the members of the groups that may be described, and why others may not."""
    listed = client.list_consumer_groups(request_timeout=PATIENCE).result()
    if listed.errors:
        raise listed.errors[0]
    groups = [group.group_id for group in listed.valid]
    described = client.describe_consumer_groups(groups, request_timeout=PATIENCE) if groups else {}
    found, refused = set[tuple[str, str]](), list[str]()
    for group in described.values():
        try:
            found |= {(UNKNOWN, member.client_id) for member in group.result().members}
        except KafkaException as error:
            refused.append(error.args[0].str())
    skipped = (
        f"{len(refused):,} of {counted(len(groups), 'group')}: {refused[0]}" if refused else None
    )
    return ClientSource(_GROUPS, frozenset(found), skipped)
