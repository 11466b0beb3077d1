"""verify: bootstrap: if the advertised addresses are out of reach, one address is enough."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.kafka.client.description import Broker
from quota_ops.kafka.cluster import open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.plans.policy import VerifyPolicy
from quota_ops.model.runs.verification import BOOTSTRAP
from quota_ops.store.run.files import METADATA
from tests.broker.pinging import Pinged, ping
from tests.broker.stage_runs import TEN
from tests.broker.wire import Wire
from tests.lab import Lab


@pytest.fixture(name="link")
def _link(lab: Lab, broker: RunningBroker) -> Iterator[Broker]:
    """Return the one address that leads to the broker, which the lab's connection names."""
    wire = Wire(broker.nodes[0].address("PRIVATE"))
    lab.connection_file.write_text(f"bootstrap.servers=127.0.0.1:{wire.port}\n", "ascii")
    yield Broker(BOOTSTRAP, "127.0.0.1", wire.port)
    wire.remove()


def came(silent: socket.socket) -> int:
    """Return how many connections were opened to an address since the last call."""
    number = 0
    while True:
        try:
            silent.accept()[0].close()
        except BlockingIOError:
            return number
        number += 1


@pytest.mark.parametrize(
    ("server", "host", "port"),
    [
        ("kafka-1", "kafka-1", 9092),
        (" SASL_SSL://kafka-1:9094", "kafka-1", 9094),
        ("[::1]:9094", "::1", 9094),
        ("[::1]", "::1", 9092),
    ],
)
def test_an_address_is_read_as_librdkafka_reads_it(server: str, host: str, port: int) -> None:
    """An address may have a protocol before it, and may lack a port."""
    assert Broker.at(server) == Broker(BOOTSTRAP, host, port)


def test_no_broker_can_be_reached(
    link: Broker, broker: RunningBroker, out_of_reach: socket.socket, tmp_path: Path
) -> None:
    """A run that queries every broker names the unreachable one, and the setting for this link."""
    pinged = ping(tmp_path, f"bootstrap.servers={link.address}\n", broker.config.cluster_id)

    said = pinged.stdout + pinged.stderr
    assert pinged.exit_code == 3
    assert f"127.0.0.1:{out_of_reach.getsockname()[1]}" in said
    assert (
        "If only the bootstrap address is reachable, for example over a private link, set "
        "verify: bootstrap in cluster.yaml."
    ) in said


def test_a_run_over_a_private_link(lab: Lab, link: Broker, out_of_reach: socket.socket) -> None:
    """With verify: bootstrap a run uses one address alone, and every output shows this."""
    lab.desire(TEN, verify="bootstrap")
    came(out_of_reach)

    done = lab.call("reconcile", "demo")
    again = lab.call("verify", "demo")

    said = "the bootstrap address agrees (broker 1 responded, no other was queried)"
    assert (done.returncode, done.stderr) == (0, "")
    assert f"; {said}; report: " in done.stdout
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == (
        f"the bootstrap address {link.address} (broker 1) agrees\n"
        "10 of 10 quotas verified at the bootstrap address: stored and in force.\n"
    )
    assert came(out_of_reach) == 0
    assert lab.stored() == lab.known() == TEN
    (run,) = (one for one in lab.runs if one.has("report.txt"))
    for name in ("report.txt", "report.html"):
        assert said in (run.place / name).read().decode()
    assert "<td>1, at the bootstrap address</td>" in (run.place / "report.html").read().decode()
    report = run.read_json("report.json")
    assert report["brokers"] == [
        {
            "broker": 1,
            "address": link.address,
            "queries": report["brokers"][0]["queries"],
            "lagging": 0,
            "error": None,
            "bootstrap": True,
            "absent": False,
            "compared": 10,
            "skipped": 0,
        }
    ]
    assert run.read_json(METADATA)["led"] is True


@pytest.mark.usefixtures("impatient_verify")
def test_a_broker_behind_a_private_link_differs(lab: Lab, link: Broker) -> None:
    """With verify: bootstrap an error names the address and the id of the broker behind it."""
    lab.desire({"user=alice": {"producer_byte_rate": 1.0}}, verify="bootstrap")
    connection = Connection.parse(lab.connection_file.read_text(), name="demo", source="a test")
    with open_cluster(connection, cluster_id=None, verify=VerifyPolicy.BOOTSTRAP) as cluster:
        facts = cluster.read_facts(2.0)
        _, error = lab.refused("verify", connect=lambda: cluster)

    assert error.message == (
        "the bootstrap address does not store the desired values: "
        f"the bootstrap address {link.address} (broker 1) differs from Git in 1 key"
    )
    advertised = cluster.brokers[0].address
    assert facts.brokers == (BrokerFacts(1, advertised, "4.3", "", 3, 8),)


def test_ping_over_a_private_link(link: Broker, broker: RunningBroker, tmp_path: Path) -> None:
    """One address is queried, the broker that responds is named, and every operation is allowed."""
    cluster_id, wide = broker.config.cluster_id, len(link.address)
    policy = f"{cluster_id}\nverify: bootstrap"

    assert ping(tmp_path, f"bootstrap.servers={link.address}\n", policy) == Pinged(
        0,
        f"demo ({cluster_id}, as in cluster.yaml; KRaft)      the bootstrap address responds\n\n"
        f"  broker  {'address':{wide}}  Kafka  response\n"
        f"  1       {link.address}  4.3    N ms\n\n"
        "  User:ANONYMOUS is authorized to\n"
        "  describe quotas                  yes\n"
        "  alter quotas                     yes\n"
        "  list users                       yes\n",
        "",
    )
