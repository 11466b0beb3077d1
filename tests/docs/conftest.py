"""Fixtures that run the pages of the documentation."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from tests.docs.shell import Shell
from tests.writing import empty

DEMO, SECURED = "127.0.0.1:9092", "kafka-1:9094"
"""The brokers as pages write them: one without authentication, one with."""

LOGIN = """\
bootstrap.servers={servers}
security.protocol=sasl_plaintext
sasl.mechanism=PLAIN
sasl.username={user}
sasl.password={user}-secret
"""


@pytest.fixture
def shell(
    tmp_path: Path, broker: RunningBroker, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Shell]]:
    """Return a function that makes the shell of a page, with connections to its brokers."""
    used = [broker]
    home = tmp_path / "you"
    told = {DEMO: broker.bootstrap(), "/etc/kafka/ca.pem": str(home / "ca.pem")}

    def of_page(text: str) -> Shell:
        shell = Shell(home, told)
        shell.prepare()
        shell.connection("demo", f"bootstrap.servers={broker.bootstrap()}\n")
        if SECURED in text:
            secured: RunningBroker = request.getfixturevalue("secured_broker")
            used.append(secured)
            told[SECURED] = secured.bootstrap("SASL")
            for user in ("admin", "writer", "reader"):
                shell.connection(user, LOGIN.format(servers=told[SECURED], user=user))
        return shell

    clear(broker)
    yield of_page
    for one in used:
        clear(one)
    if len(used) > 1:
        revoke(used[1])


def clear(broker: RunningBroker) -> None:
    """Clear every quota of a broker."""
    text = f"bootstrap.servers={broker.bootstrap()}"
    with open_cluster(Connection.parse(text, name="docs", source=""), cluster_id=None) as cluster:
        empty(cluster)


def revoke(broker: RunningBroker) -> None:
    """Revoke every permission on the cluster that a page granted."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap())
    cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, cluster)
    admin.delete_acls([every])
    admin.close()
