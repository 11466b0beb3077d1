"""The sandbox is a real Kafka that works, reports failures, and leaves nothing behind."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka import broker as broker_module
from quota_ops.lab.kafka.broker import RunningBroker, can_describe, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.node import read_node
from quota_ops.lab.kafka.sandbox import DEMO_CLUSTER_ID, find_sandbox, start_sandbox, stop_sandbox
from quota_ops.model.errors import ClusterTrouble, InvalidInput, NotAuthorized
from quota_ops.model.quotas.rows import StoredQuota
from tests.broker_config import generate_cluster_id, password_of
from tests.certificates import make_certificates
from tests.docs.transcript import mask_machine, shown_output
from tests.looking import seen_in_time
from tests.writing import write

PARENT = """\
import sys, time
from pathlib import Path
from quota_ops.lab.kafka.broker import start_broker
from quota_ops.lab.kafka.config import BrokerConfig
start_broker(BrokerConfig(cluster_id="MkU3OEVBNTcwNTJENDM2Qg"), Path(sys.argv[1]))
print(flush=True)
time.sleep(60)
"""
LOUD = (
    "(org.apache.kafka.controller.ClientQuotaControlManager)",
    "(org.apache.kafka.server.quota.ClientQuotaManager)",
    "(kafka.server.ClientRequestQuotaManager)",
    "(org.apache.kafka.common.config.AbstractConfig)",
    "(kafka.server.KafkaConfig)",
)
"""How the lines end that a sandbox leaves out: they would be five for each changed quota."""


def test_a_broker_describes_when_it_is_returned(broker: RunningBroker) -> None:
    """A broker from start_broker responds to a describe at once, on loopback alone."""
    assert broker.bootstrap().startswith("127.0.0.1:")
    assert can_describe(broker.bootstrap(), nodes=1)


def test_changed_quotas_are_not_logged_at_length(broker: RunningBroker) -> None:
    """The log has the start and the end, and neither every setting nor every quota.

    Lines caused by other tests, for example about the partitions of a topic, do not count.
    """
    connection = Connection.parse(
        f"bootstrap.servers={broker.bootstrap()}\n", name="demo", source="a test"
    )
    with open_cluster(connection, cluster_id=broker.config.cluster_id) as cluster:
        for rate in (5.0, None):
            write(cluster, {"user=logged": {"producer_byte_rate": rate}})

    log = broker.log.read_text()
    assert "Kafka Server started" in log
    assert [line for line in log.splitlines() if line.endswith(LOUD)] == []


@pytest.mark.matrix  # tests/unit/test_sandbox_launch.py kills the parent of a smaller process
def test_a_killed_parent_leaves_no_orphan(tmp_path: Path) -> None:
    """SIGKILL to the parent ends the broker too, within seconds."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout
    assert parent.stdout.readline() == b"\n"
    node = read_node(tmp_path / "node-1")
    assert node
    assert node.alive
    parent.kill()
    parent.communicate()
    assert not seen_in_time(lambda: node.alive, expected=False)


def test_a_taken_port_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another process takes a chosen port before Kafka does, other ports are chosen."""
    choose = broker_module.find_free_ports
    config = BrokerConfig(cluster_id=generate_cluster_id())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        collision = {1: {**choose(config, tmp_path)[1], "PLAINTEXT": taken.getsockname()[1]}}
        choices = iter([collision])
        monkeypatch.setattr(
            broker_module, "find_free_ports", lambda *given: next(choices, None) or choose(*given)
        )
        with start_broker(config, tmp_path) as running:
            assert running.nodes[0].ports["PLAINTEXT"] != collision[1]["PLAINTEXT"]
    assert "Address already in use" in running.log.with_name("broker.log.previous").read_text()


def test_a_broker_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    """The error ends with Kafka's own last lines and names the file that has the rest."""
    config = BrokerConfig(
        cluster_id=generate_cluster_id(), properties={"metric.reporters": "no.Such"}
    )
    with pytest.raises(ClusterTrouble) as error:
        start_broker(config, tmp_path)
    log = tmp_path / "node-1" / "broker.log"
    assert str(log) in error.value.message
    assert "no.Such" in error.value.message
    node = read_node(tmp_path / "node-1")
    assert node
    assert not node.alive


def test_settings_that_kafka_refuses_are_told(tmp_path: Path) -> None:
    """StorageTool's message before the first start is shown, without Java's stack."""
    config = BrokerConfig(cluster_id=generate_cluster_id(), properties={"num.io.threads": "-1"})
    with pytest.raises(ClusterTrouble) as error:
        start_broker(config, tmp_path)
    assert "Invalid value -1 for configuration num.io.threads" in error.value.message
    assert "\tat " not in error.value.message


def test_the_data_of_another_cluster_is_left_alone(tmp_path: Path) -> None:
    """A folder with another cluster's data is named instead of being started under its id."""
    meta = tmp_path / "node-1" / "data-4.3.1" / "meta.properties"
    meta.parent.mkdir(parents=True)
    meta.write_text("cluster.id=MkU3OEVBNTcwNTJENDM2Qg\nnode.id=1\n")
    with pytest.raises(InvalidInput, match="contains the data of a different cluster"):
        start_broker(BrokerConfig(cluster_id=generate_cluster_id()), tmp_path)


def test_the_sandbox_starts_once_and_stops(sandbox_home: Path) -> None:
    """It runs in the background under its id and name; a second start leaves it as it is.

    Stopped and started again it keeps its ports, so that a copied connection stays valid. A
    reboot leaves the connection and the id of a process, which another process may have by then.
    """
    assert find_sandbox().node is None
    first = start_sandbox()
    again = start_sandbox()
    assert first.started
    assert not again.started
    assert first.node == again.node == find_sandbox().node
    assert first.node
    assert first.node.cluster_id == DEMO_CLUSTER_ID
    assert find_sandbox().running
    with pytest.raises(InvalidInput) as error:
        start_sandbox(version="4.4.0")
    assert str(error.value) == (
        "The sandbox already runs Kafka 4.3.1.\n"
        "  Run: quota-ops sandbox stop && quota-ops sandbox start --version 4.4.0"
    )
    connection = first.connection.read_text()
    assert f"bootstrap.servers={first.node.address()}\n" in connection
    assert first.node.folder == sandbox_home / "node-1"

    assert stop_sandbox()
    assert not stop_sandbox()
    assert not find_sandbox().running
    assert not first.node.alive
    assert not first.connection.exists()
    told = CliRunner().invoke(main, ["sandbox", "status"])
    assert (told.exit_code, "connection" in told.output) == (3, False)

    first.connection.write_text(connection)
    state = sandbox_home / "node-1" / "node.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"pid": os.getpid()}))
    assert not find_sandbox().running
    again = start_sandbox()
    assert again.started
    assert again.running
    assert again.node
    assert again.node.ports == first.node.ports


@pytest.mark.matrix
@pytest.mark.local_store
@pytest.mark.usefixtures("sandbox_home")
def test_a_sandbox_like_production(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --brokers 3 --auth scram-tls the connection is of a user who may only alter quotas.

    The configuration of the client is of a user who may not describe quotas, another password or
    an authority that did not sign the brokers' certificate is rejected, and a second start with
    other options says how to get them.
    """
    run = CliRunner().invoke
    started = run(main, ["sandbox", "start", "--brokers", "3", "--auth", "scram-tls"])
    assert started.exit_code == 0, started.output
    shown = shown_output(
        "how-to/install.md", "quota-ops sandbox start --brokers 3 --auth scram-tls"
    )
    assert mask_machine(started.stderr + started.stdout) == shown
    told = run(main, ["sandbox", "status", "--format", "json"])
    status = json.loads(told.stdout)
    assert status["brokers"] == len(status["bootstrap"].split(",")) == 3
    declared = run(main, ["ping", "demo"])
    assert (declared.exit_code, "expected the cluster" in declared.stderr) == (3, True)

    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {status['cluster_id']}\nconnection: demo\n")
    monkeypatch.setenv("QUOTA_OPS_DESIRED_STATE", str(tmp_path / "desired_state"))
    ping = run(main, ["ping", "demo"])
    assert "3 of 3 brokers respond" in ping.stdout
    assert "User:svc-quota is authorized to" in ping.stdout
    assert re.findall(r"(?:alter quotas|list users) +(\w+)", ping.stdout) == ["yes", "yes"]
    altered = run(main, ["alter", "demo", *RAISE, "--reason", "a test"])
    assert altered.exit_code == 0, altered.stderr

    client = Path(status["client"])
    assert client.stat().st_mode & 0o777 == 0o600
    refused = run(main, ["alter", "demo", *RAISE, "--reason", "no", "--connection", str(client)])
    assert refused.exit_code == 3
    assert "User:alice is not authorized to describe client quotas" in refused.stderr
    demo, folder = Path(status["connection"]).read_text(), client.with_name("certificates")
    assert "security.protocol=SASL_SSL" in demo
    assert folder.stat().st_mode & 0o777 == 0o700
    make_certificates(client.parent, "client")
    stranger = client.with_name("stranger.properties")
    stranger.write_text(demo.replace("certificates/ca.pem", "other-ca.pem"))
    distrusted = run(main, ["describe", "demo", "--connection", str(stranger)])
    assert distrusted.exit_code == 3
    assert "certificate" in distrusted.stderr
    client.write_text(re.sub('password="[^"]*"', 'password="wrong"', client.read_text()))
    rejected = run(main, ["describe", "demo", "--connection", str(client)])
    assert "rejected the credentials of user 'alice'" in rejected.stderr

    other = run(main, ["sandbox", "start", "--brokers", "1"])
    assert other.stderr.splitlines()[-2:] == [
        "The sandbox already runs Kafka 4.3.1 with 3 brokers with scram-tls.",
        "  Run: quota-ops sandbox stop && quota-ops sandbox start --brokers 1",
    ]
    assert run(main, ["sandbox", "stop"]).stdout == "stopped\n"
    assert run(main, ["sandbox", "status"]).exit_code == 3


RAISE = ["--names", "user=alice", "--add", "producer_byte_rate=1048576"]


def test_a_connection_of_ones_own_stops_the_start(sandbox_home: Path) -> None:
    """If the name demo is a user's own connection, nothing is started."""
    connection = find_sandbox().connection
    connection.parent.mkdir()
    connection.write_text("bootstrap.servers=kafka-1:9094\n")
    with pytest.raises(InvalidInput, match="your own connection"):
        start_sandbox()
    assert not (sandbox_home / "node-1").exists()
    assert connection.read_text() == "bootstrap.servers=kafka-1:9094\n"


def test_a_secured_broker_tells_its_logins_apart(secured_broker: RunningBroker) -> None:
    """On its SASL listener admin may describe, and a user without permission may not."""

    def describe_as(user: str) -> tuple[StoredQuota, ...]:
        text = (
            f"bootstrap.servers={secured_broker.bootstrap('SASL')}\n"
            "security.protocol=sasl_plaintext\nsasl.mechanism=PLAIN\n"
            f"sasl.username={user}\nsasl.password={password_of(user)}\n"
        )
        connection = Connection.parse(text, name="secured", source="a test")
        with open_cluster(connection, cluster_id=secured_broker.config.cluster_id) as cluster:
            return cluster.describe()

    assert describe_as("admin") == ()
    with pytest.raises(NotAuthorized):
        describe_as("none")
