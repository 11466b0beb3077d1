"""A broker with a quota callback class: every command about limits warns of it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.jvm.java import find_java
from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.jars import fetch_jars
from tests.broker_config import generate_cluster_id
from tests.lab import Lab, open_lab

NO_LIMITS = Path(__file__).with_name("NoLimits.java")
WORDS = (
    "client.quota.callback.class is NoLimits on every broker: it decides instead of Kafka, "
    "and may ignore the stored quotas of users and client ids."
)
ALICE = ("resolve", "demo", "--user", "alice")


# A compiler, and a broker of its own.
pytestmark = [pytest.mark.local_store, pytest.mark.matrix]


@pytest.fixture(name="strange", scope="module")
def _strange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Start a broker with a quota callback, from the folder on its class path."""
    compiler = shutil.which(find_java() + "c") or shutil.which("javac")
    if compiler is None:
        pytest.skip("a broker's class is compiled by a JDK; here is only a JRE")
    home = tmp_path_factory.mktemp("strange")
    jars = f"{fetch_jars()}/*"
    subprocess.run([compiler, "-cp", jars, "-d", home / "node-1", NO_LIMITS], check=True)
    config = BrokerConfig(
        cluster_id=generate_cluster_id(), properties={"client.quota.callback.class": "NoLimits"}
    )
    with start_broker(config, home) as running:
        yield running


@pytest.fixture(name="lab")
def _lab(strange: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(strange, tmp_path) as lab:
        lab.desire({"user=alice": {"producer_byte_rate": 1048576.0}})
        yield lab


def test_a_plan_and_a_report_say_so(lab: Lab) -> None:
    """The screens of plan and verify show the warning once, and every file of a report has it."""
    screens = [lab.call(command, "demo").stdout for command in ("plan", "verify")]
    lab.call("report", "demo")

    assert [screen.splitlines().count(WORDS) for screen in screens] == [1, 1]
    run = lab.runs[-1].place
    for name in ("report.html", "report.json", "report.txt"):
        assert "client.quota.callback.class is" in (run / name).read().decode()


def test_ping_says_so(lab: Lab) -> None:
    """The last line of ping is the warning, and the exit code is 0."""
    pinged = lab.call("ping", "demo")

    assert (pinged.returncode, pinged.stdout.splitlines()[-1]) == (0, WORDS)


def test_what_resolve_found_may_not_hold(lab: Lab) -> None:
    """Every format of resolve has the warning, for one client or many, but not for addresses."""
    clients = lab.root / "clients.csv"
    clients.write_text("user,client-id\nalice,app\n")

    for more in ((), ("--explain", "--key", "producer_byte_rate")):
        assert lab.call(*ALICE, *more).stdout.splitlines()[-1] == WORDS
    said = json.loads(lab.call(*ALICE, "--ip", "10.0.0.1", "--format", "json").stdout)
    assert {key: one.get("warning") for key, one in said.items()} == {
        "producer_byte_rate": WORDS,
        "consumer_byte_rate": WORDS,
        "request_percentage": WORDS,
        "controller_mutation_rate": WORDS,
        "connection_creation_rate": None,
    }
    shown = lab.call("effects", "demo", "--all", "--inventory", str(clients))
    assert shown.stderr == f"{WORDS}\n"
    assert "callback" not in lab.call("resolve", "demo", "--ip", "10.0.0.1").stdout
