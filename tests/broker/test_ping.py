"""ping: which brokers respond, what you are authorized to do, and every failure in words."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.report.outline.sentences import INCOMPLETE
from tests.broker.conftest import Listeners
from tests.broker.lacking import Lacking
from tests.broker.pinging import Pinged, ping
from tests.broker.rights import properties_of, rights
from tests.broker.zookeeper import running_zookeeper
from tests.clock import PROMPTLY
from tests.yaml_cases import load_yaml

FAILURES = load_yaml(
    (Path(__file__).parents[1] / "cases/connection/failures.yaml").read_text("utf-8")
)
WORTH_A_PING = {
    "a wrong password",
    "a certificate that is not trusted",
    "a certificate for another host",
    "TLS to a plaintext listener",
    "plaintext to a TLS listener",
    "a port that does not respond",
    "an unknown host",
    "nothing listens",
    "a controller's address",
}
YES, UNTOLD = "yes", "no, without Describe; only some findings need it"
NO_DESCRIBE = "no: it needs DescribeConfigs on the resource Cluster"
NO_ALTER = "no: it needs AlterConfigs on the resource Cluster"


def said(ping_of: str, address: str, *may: str, version: str = "4.3", principal: str) -> str:
    """Return ping's output for one broker that responds."""
    wide = max(len(address), 7)
    left = max(len(f"  {principal} is authorized to"), len("  describe quotas"))
    rows = zip(("describe quotas", "alter quotas", "list users"), may, strict=True)
    return (
        f"demo ({ping_of})      1 of 1 broker responds\n\n"
        f"  broker  {'address':{wide}}  Kafka  response\n"
        f"  1       {address:{wide}}  {version:5}  N ms\n\n"
        f"  {principal} is authorized to\n"
        + "".join(f"{f'  {what}':{left}}  {can}\n" for what, can in rows)
    )


def grant(servers: str, user: str, operation: str) -> str:
    """Return ping's advice to an administrator."""
    return (
        f"\nAn administrator grants {operation} with:\n"
        f"    kafka-acls.sh --bootstrap-server {servers} --command-config ADMIN.properties "
        f"--add --allow-principal User:{user} --operation {operation} --cluster\n"
    )


@pytest.fixture(name="granted", scope="module")
def _granted(secured_broker: RunningBroker) -> Iterator[RunningBroker]:
    with rights(secured_broker):
        yield secured_broker


@pytest.mark.parametrize(
    ("user", "may", "exit_code"),
    [
        ("admin", (YES, YES, YES), 0),
        ("writer", (YES, YES, UNTOLD), 0),
        ("reader", (YES, NO_ALTER, UNTOLD), 1),
        ("none", (NO_DESCRIBE, NO_ALTER, UNTOLD), 1),
    ],
)
def test_what_we_may_do(
    user: str, may: tuple[str, ...], exit_code: int, granted: RunningBroker, tmp_path: Path
) -> None:
    """Ping shows each user's permissions, and the command that grants a missing one."""
    cluster_id, servers = granted.config.cluster_id, granted.bootstrap("SASL")

    pinged = ping(tmp_path, properties_of(granted, user), cluster_id)

    missing = [no for no in ("DescribeConfigs", "AlterConfigs") if any(no in can for can in may)]
    assert pinged == Pinged(
        exit_code,
        said(f"{cluster_id}, as in cluster.yaml; KRaft", servers, *may, principal=f"User:{user}")
        + "".join(grant(servers, user, operation) for operation in missing),
        "",
    )


def test_ping_for_machines(granted: RunningBroker, tmp_path: Path) -> None:
    """The JSON of ping has each broker, and each permission with the command that grants it."""
    cluster_id, servers = granted.config.cluster_id, granted.bootstrap("SASL")

    pinged = ping(tmp_path, properties_of(granted, "reader"), cluster_id, "--format", "json")

    told = json.loads(pinged.stdout)
    assert 0 < told["brokers"][0].pop("seconds") < 5
    commands = [right.pop("grant") for right in told["rights"]]
    assert [command.split(" --operation ")[1] for command in commands] == [
        "DescribeConfigs --cluster",
        "AlterConfigs --cluster",
        "Describe --cluster",
    ]
    unknown = {"error": None}
    assert told == {
        "cluster": "demo",
        "cluster_id": cluster_id,
        "principal": "User:reader",
        "mode": "KRaft",
        "brokers": [
            {
                "id": 1,
                "address": servers,
                "version": "4.3",
                "callback_class": "",
                "network_threads": 3,
                "io_threads": 8,
                "error": None,
            }
        ],
        "rights": [
            {"what": what, "operation": operation, "granted": yes, "needed": needed, **unknown}
            for what, operation, yes, needed in (
                ("describe quotas", "DescribeConfigs", True, True),
                ("alter quotas", "AlterConfigs", False, True),
                ("list users", "Describe", False, False),
            )
        ],
        "absent": [],
        "complete": True,
        "bootstrap": False,
        "warnings": [],
    }


def test_another_cluster(granted: RunningBroker, tmp_path: Path) -> None:
    """If another cluster than that of cluster.yaml responds, no other request is sent."""
    other, servers = "MkU3OEVBNTcwNTJENDM2Qg", granted.bootstrap("SASL")

    pinged = ping(tmp_path, properties_of(granted, "admin"), other)

    assert (pinged.exit_code, pinged.stdout) == (3, "")
    assert pinged.stderr.startswith(
        f"connection demo: expected the cluster {other}, but {servers} belongs to "
        f"{granted.config.cluster_id}.\n"
    )


@pytest.mark.parametrize(
    "case",
    [case for case in FAILURES if case["case"] in WORTH_A_PING],
    ids=lambda case: case["case"],
)
def test_why_there_is_no_answer(case: Any, listeners: Listeners, tmp_path: Path) -> None:
    """Each failure has its own text, in less than five seconds."""
    address, folder = listeners.addresses[case["listener"]], str(listeners.folder)
    lines = {"bootstrap.servers": address, **case.get("settings", {})}
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    began = time.monotonic()

    pinged = ping(tmp_path, text.replace("${FOLDER}", folder), listeners.cluster_id)

    assert time.monotonic() - began < PROMPTLY
    words = case["message"].replace("${ADDRESS}", address).replace("${FOLDER}", folder)
    assert pinged == Pinged(3, "", f"{words}\n")


def test_a_cluster_without_the_quota_calls(broker: RunningBroker, tmp_path: Path) -> None:
    """A broker without the two calls is named, and no alter is sent to it."""
    real = broker.nodes[0].ports["PLAINTEXT"]
    with Lacking(real, (48, 49)) as lacking:
        text = f"bootstrap.servers={lacking.address}\n"
        pinged = ping(tmp_path, text, broker.config.cluster_id)

    missing = "does not support {} (Apache Kafka 2.6 and later)"
    assert pinged == Pinged(
        3,
        f"demo ({broker.config.cluster_id}, as in cluster.yaml; KRaft)      "
        "0 of 1 broker responds\n\n"
        f"  broker  {'address':{len(lacking.address)}}  Kafka  response\n"
        f"  1       {lacking.address}  4.3    {missing.format('DescribeClientQuotas')}\n\n"
        "  User:ANONYMOUS is authorized to\n"
        f"  describe quotas                  unknown: {missing.format('DescribeClientQuotas')}\n"
        f"  alter quotas                     unknown: {missing.format('AlterClientQuotas')}\n"
        "  list users                       yes\n",
        "",
    )


@pytest.mark.matrix  # two more JVMs, of a Kafka that is only supported
def test_a_cluster_with_zookeeper(tmp_path: Path) -> None:
    """ZooKeeper mode is recognised, with a note about the differences."""
    with running_zookeeper(tmp_path / "kafka") as (cluster_id, address):
        pinged = ping(tmp_path, f"bootstrap.servers={address}\n", cluster_id)

    where = f"{cluster_id}, as in cluster.yaml; ZooKeeper"
    assert pinged == Pinged(
        0,
        said(where, address, YES, YES, YES, version="3.9", principal="User:ANONYMOUS")
        + "\nThe cluster keeps its metadata in ZooKeeper: it accepts limits that KRaft rejects, "
        f"and rounds the values that it stores. quota-ops is not tested with it.\n\n{INCOMPLETE}\n",
        "",
    )
