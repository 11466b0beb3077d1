"""Logins of different rights on the secured broker, and connections as them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from quota_ops.kafka.connection import Connection
from quota_ops.sandbox.broker import RunningBroker


@contextmanager
def rights(secured_broker: RunningBroker) -> Iterator[None]:
    """Within the block writer may alter and reader describe; none may nothing, admin everything."""
    acls = [
        ACL(
            f"User:{user}",
            "*",
            operation,
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"),
        )
        for user, operation in (
            ("writer", ACLOperation.ALTER_CONFIGS),
            ("reader", ACLOperation.DESCRIBE_CONFIGS),
        )
    ]
    with closing(KafkaAdminClient(bootstrap_servers=secured_broker.bootstrap())) as admin:
        assert admin.create_acls(acls)["failed"] == []
        yield
        admin.delete_acls(acls)


def properties_of(secured_broker: RunningBroker, user: str) -> str:
    """The connection file of a login."""
    return (
        f"bootstrap.servers={secured_broker.bootstrap('SASL')}\n"
        "security.protocol=sasl_plaintext\nsasl.mechanism=PLAIN\n"
        f"sasl.username={user}\nsasl.password={secured_broker.config.users[user]}\n"
    )


def connection_of(secured_broker: RunningBroker, user: str) -> Connection:
    """The connection of a login."""
    return Connection.parse(properties_of(secured_broker, user), name="demo", source="a test")
