"""Users with different permissions on the secured broker, and connections as these users."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.lab.kafka.config import BrokerConfig
from tests.broker_config import SASL, password_of, plain_logins
from tests.looking import seen_in_time

SCRAM = "SCRAM-SHA-256"
USERS = ("admin", "writer", "reader", "none")
SECURED_CLUSTER_ID = "b3JkZXJzLWV1LWNsdXN0ZQ"
"""The id is part of every plan's digest, and digests are compared whole."""


def secured(version: str) -> BrokerConfig:
    """Return a broker with an authorizer and PLAIN, and with SCRAM for users of a test."""
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return BrokerConfig(
        cluster_id=SECURED_CLUSTER_ID,
        version=version,
        listeners=SASL,
        super_users=("admin",),
        properties={
            **plain_logins({name: password_of(name) for name in USERS}),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": scram,
        },
    )


@contextmanager
def rights(secured_broker: RunningBroker) -> Iterator[None]:
    """Let writer alter and reader describe within the block.

    None may do nothing, admin everything.
    """
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
        try:
            assert admin.create_acls(acls)["failed"] == []
            wait_for(lambda: principals(admin), {acl.principal for acl in acls})
            yield
        finally:
            admin.delete_acls(acls)
            wait_for(lambda: principals(admin), set())


@contextmanager
def scram_logins(secured_broker: RunningBroker) -> Iterator[None]:
    """Let the users authenticate with SCRAM too within the block."""
    with closing(KafkaAdminClient(bootstrap_servers=secured_broker.bootstrap())) as admin:
        try:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(user, SCRAM, password_of(user)) for user in USERS]
            )
            wait_for(lambda: set(admin.describe_user_scram_credentials()), set(USERS))
            yield
        finally:
            admin.alter_user_scram_credentials(
                [UserScramCredentialDeletion(user, SCRAM) for user in USERS]
            )
            wait_for(lambda: set(admin.describe_user_scram_credentials()), set())


def principals(admin: KafkaAdminClient) -> set[str]:
    """Return the principals with an ACL on the broker."""
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    return {acl.principal for acl in admin.describe_acls(every)[0]}


def wait_for(look: Callable[[], object], expected: object) -> None:
    """Poll until the value is as expected; an assertion fails after a minute."""
    assert seen_in_time(look, expected) == expected


def properties_of(secured_broker: RunningBroker, user: str, mechanism: str = "PLAIN") -> str:
    """Return the connection file of a user."""
    return (
        f"bootstrap.servers={secured_broker.bootstrap('SASL')}\n"
        f"security.protocol=sasl_plaintext\nsasl.mechanism={mechanism}\n"
        f"sasl.username={user}\nsasl.password={password_of(user)}\n"
    )


def connection_of(secured_broker: RunningBroker, user: str, mechanism: str = "PLAIN") -> Connection:
    """Return the connection of a user."""
    text = properties_of(secured_broker, user, mechanism)
    return Connection.parse(text, name="demo", source="a test")
