"""A broker's configuration follows from its value alone."""

import base64

from quota_ops.lab.kafka.config import BrokerConfig, server_properties
from tests.broker_config import generate_cluster_id, plain_logins

COMMON = """\
inter.broker.listener.name=PLAINTEXT
log.dirs=data-4.3.1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
metadata.max.idle.interval.ms=0
controller.quorum.append.linger.ms=0
log.cleaner.dedupe.buffer.size=2097152
"""


def test_every_node_knows_every_voter() -> None:
    """Each node listens on its own ports and names the controller of every node."""
    config = BrokerConfig(cluster_id="MkU3OEVBNTcwNTJENDM2Qg", nodes=2)
    ports = {1: {"PLAINTEXT": 11, "CONTROLLER": 12}, 2: {"PLAINTEXT": 21, "CONTROLLER": 22}}
    expected = f"""\
process.roles=broker,controller
node.id=2
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:12,2@127.0.0.1:22
listeners=PLAINTEXT://127.0.0.1:21,CONTROLLER://127.0.0.1:22
advertised.listeners=PLAINTEXT://127.0.0.1:21
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
{COMMON}"""
    assert server_properties(config, 2, ports) == expected


def test_an_authorizer_and_further_properties() -> None:
    """Super users enable the authorizer, and own settings win."""
    config = BrokerConfig(
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        listeners={"SASL": "SASL_PLAINTEXT", "TLS": "SSL"},
        super_users=("admin",),
        properties={"quota.window.num": "3", **plain_logins({"admin": "a", "none": "n\\n"})},
    )
    ports = {1: {"PLAINTEXT": 1, "SASL": 2, "TLS": 3, "CONTROLLER": 4}}
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    expected = f"""\
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:4
listeners=PLAINTEXT://127.0.0.1:1,SASL://127.0.0.1:2,TLS://127.0.0.1:3,CONTROLLER://127.0.0.1:4
advertised.listeners=PLAINTEXT://127.0.0.1:1,SASL://127.0.0.1:2,TLS://127.0.0.1:3
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT
{COMMON}\
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
quota.window.num=3
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={module} required user_admin="a" user_none="n\\\\n";
"""
    assert server_properties(config, 1, ports) == expected


def test_passwords_are_not_shown() -> None:
    """A configuration in a message or a log does not contain its passwords."""
    config = BrokerConfig(cluster_id="x", properties={"a": "hidden"})
    assert "hidden" not in repr(config)


def test_cluster_ids_are_what_kafka_takes() -> None:
    """An id is 16 bytes in 22 characters, differs each time, and never looks like an option."""
    ids = {generate_cluster_id() for _ in range(500)}
    assert len(ids) == 500
    assert {len(base64.urlsafe_b64decode(each + "==")) for each in ids} == {16}
    assert not [each for each in ids if len(each) != 22 or each.startswith("-")]
