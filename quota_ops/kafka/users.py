"""Creates users and their permissions on a cluster of this machine, for the sandbox."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from quota_ops.model.errors import ClusterTrouble

_SECONDS = 30.0
_ITERATIONS = 4096
"""The fewest that Kafka accepts."""


def create_users(
    bootstrap: str, passwords: Mapping[str, str], writers: Iterable[str], clients: Iterable[str]
) -> None:
    """Create SCRAM-SHA-512 users with these passwords, or set the passwords of existing ones.

    `writers` may describe and alter quotas, and list users; `clients` may use all topics and
    groups. `bootstrap` is a listener without authentication whose clients are super users. Raises
    ClusterTrouble if the cluster rejects a change.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
    changes: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(user, scram, password.encode())
        for user, password in passwords.items()
    ]
    _wait(admin.alter_user_scram_credentials(changes))
    cluster, every = (ResourceType.BROKER, "kafka-cluster"), "*"
    rules = [
        *((user, *cluster, AclOperation.ALTER_CONFIGS) for user in writers),
        *((user, *cluster, AclOperation.DESCRIBE) for user in writers),
        *((user, ResourceType.TOPIC, every, AclOperation.ALL) for user in clients),
        *((user, ResourceType.GROUP, every, AclOperation.ALL) for user in clients),
    ]
    bindings = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            every,
            operation,
            AclPermissionType.ALLOW,
        )
        for user, kind, name, operation in rules
    ]
    _wait(admin.create_acls(bindings))


def _wait(changes: Mapping[Any, Future[Any]]) -> None:
    for what, done in changes.items():
        try:
            done.result(_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise ClusterTrouble(f"the cluster rejected {what}: {error}") from None
