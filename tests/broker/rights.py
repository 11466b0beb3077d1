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
from quota_ops.sandbox.config import BrokerConfig

SECURED_CLUSTER_ID = "b3JkZXJzLWV1LWNsdXN0ZQ"
"""The id is part of every plan's digest, and digests are compared whole."""


def secured(version: str) -> BrokerConfig:
    """A broker with an authorizer and logins by PLAIN, and by SCRAM for whom a test adds."""
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return BrokerConfig(
        cluster_id=SECURED_CLUSTER_ID,
        version=version,
        listeners={"SASL": "SASL_PLAINTEXT"},
        users={name: f"{name}-secret" for name in ("admin", "writer", "reader", "none")},
        super_users=("admin",),
        properties={
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": scram,
        },
    )


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


def properties_of(secured_broker: RunningBroker, user: str, mechanism: str = "PLAIN") -> str:
    """The connection file of a login."""
    return (
        f"bootstrap.servers={secured_broker.bootstrap('SASL')}\n"
        f"security.protocol=sasl_plaintext\nsasl.mechanism={mechanism}\n"
        f"sasl.username={user}\nsasl.password={secured_broker.config.users[user]}\n"
    )


def connection_of(secured_broker: RunningBroker, user: str, mechanism: str = "PLAIN") -> Connection:
    """The connection of a login."""
    text = properties_of(secured_broker, user, mechanism)
    return Connection.parse(text, name="demo", source="a test")
