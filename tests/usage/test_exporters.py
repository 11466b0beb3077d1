"""Rules of exporters on a real broker with throttled clients, scraped by a real Prometheus."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec.structs import replace

from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.sandbox import DEMO_CLUSTER_ID, find_sandbox, stop_sandbox
from quota_ops.model.usage.series import Time
from quota_ops.model.usage.usage import Preset, UsagePolicy
from quota_ops.model.usage.use import UseProbe
from quota_ops.usage.overview import read_throttled
from quota_ops.usage.probe import probe_usage
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import read_rates
from quota_ops.usage.source import UsageSource
from tests.broker_config import SASL, plain_logins
from tests.usage.conftest import connect
from tests.usage.lab import fetch_agent, free_port, start_exported, start_prometheus
from tests.usage.scenario import CLUSTER_ID, QUOTED, set_quotas
from tests.yaml_cases import load_yaml

pytestmark = pytest.mark.matrix
HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "docs/examples/usage"
KEY = "producer_byte_rate"
LIMIT = 100_000.0
USERS = dict.fromkeys(("alice", "bob", "carol"), "secret")
NAMES = {("alice", "app"), (None, QUOTED), ("carol", None)}
"""The clients as the levels of their quotas count them."""


def produce(address: str, user: str, client_id: str, end: threading.Event) -> None:
    """Produce about 400 kB/s until the end."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
            "client.id": client_id,
            "queue.buffering.max.kbytes": 1_000,
            "log_level": 0,
        }
    )
    while not end.wait(0.1):
        for _ in range(40):
            try:
                producer.produce("load", b"x" * 1_000)
            except BufferError:
                break
        producer.poll(0)
    producer.purge()


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[Path], Iterator[str]]:
    """Return a function that yields a Prometheus of a broker with rules, for a while of load."""
    return lambda rules: _measure(tmp_path, rules)


def _measure(folder: Path, rules: Path) -> Iterator[str]:
    config = BrokerConfig(cluster_id=CLUSTER_ID, listeners=SASL, properties=plain_logins(USERS))
    ended = threading.Event()
    with start_exported(config, folder / "kafka", rules) as exported:
        admin = AdminClient({"bootstrap.servers": exported.broker.bootstrap()})
        for done in admin.create_topics([NewTopic("load", 1)]).values():
            done.result(30)
        limits = {KEY: LIMIT}
        entities = ("client-id=<default>,user=alice", "client-id=<default>", "user=carol")
        set_quotas(exported.broker, dict.fromkeys(entities, limits))
        clients = [
            threading.Thread(target=produce, args=(exported.broker.bootstrap("SASL"), *who, ended))
            for who in (("alice", "app"), ("bob", QUOTED), ("carol", "x"))
        ]
        for client in clients:
            client.start()
        try:
            with start_prometheus(folder / "prometheus", {"b1": exported.exporters[1]}) as server:
                time.sleep(25)
                yield server.url
        finally:
            ended.set()
            for client in clients:
                client.join(20)


def probe(url: str, preset: Preset) -> tuple[UseProbe, UsageSource]:
    """Return what the probe finds, and the source."""
    policy = UsagePolicy("monitoring", preset, match=(("cluster", "orders"),), step=1)
    source = UsageSource.of(policy, connect(url))
    return probe_usage(source, datetime.now(UTC)), source


@pytest.mark.parametrize(
    ("rules", "preset"),
    [
        ("jmx_exporter.yml", Preset.JMX_EXPORTER),
        ("strimzi.yaml", Preset.JMX_EXPORTER),
        ("confluent.yml", Preset.CONFLUENT),
        ("default.yml", Preset.DEFAULT),
    ],
)
def test_a_preset_reads_what_its_rules_export(
    rules: str, preset: Preset, tmp_path: Path, measured: Callable[[Path], Iterator[str]]
) -> None:
    """Use and throttling of real clients are read under their names, near the limit."""
    file = next(path for path in (EXAMPLES / rules, HERE / "rules" / rules) if path.exists())
    if rules == "strimzi.yaml":
        config = load_yaml(file.read_text(encoding="utf-8"))
        file = tmp_path / "rules.yml"
        file.write_text(config["data"]["kafka-metrics-config.yml"], encoding="utf-8")
    for url in measured(file):
        found, source = probe(url, preset)
        assert found.presets[preset] >= 1
        assert (found.up, found.interval, found.keys[0].series) == ({"b1": True}, 1, 3)
        assert (found.keys[0].unnamed, found.unnamed) == (0, {})
        other = source.names._replace(user="principal", client_id="client")
        lost = probe_usage(replace(source, names=other), datetime.now(UTC))
        assert lost.keys[0].unnamed == 3
        assert {source.names.user, source.names.client_id} & lost.unnamed.keys()
        end = datetime.now(UTC)
        time_read = Time(end - timedelta(seconds=8), end)
        tables = read_rates(source, ["b1"], KEY, time_read)
        samples = [row for table in tables for row in table.to_pylist()]
        assert {(row["user_name"], row["client_id"]) for row in samples} == NAMES
        for names in NAMES:
            values = [
                row["value"] for row in samples if (row["user_name"], row["client_id"]) == names
            ]
            assert 0.8 * LIMIT < median(values) < 1.4 * LIMIT, names
        with open_prometheus(source.connection) as server:
            assert read_throttled(server, source, "b1", KEY, time_read) == NAMES


def test_a_sandbox_shows_its_use_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page start a sandbox and a Prometheus, in which a client is measured."""
    exporter, port, state = free_port(), free_port(), tmp_path / "state/demo"
    page = (ROOT / "docs/how-to/usage.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```sh\n(export JDK.*?)```", page, re.DOTALL)
    sandbox, prometheus = lines.replace("7071", f"{exporter}").strip().rsplit("\n", 1)
    config = (ROOT / "docs/examples/usage/prometheus.yml").read_text(encoding="utf-8")
    (tmp_path / "prometheus.yml").write_text(config.replace(":7071", f":{exporter}"))
    prometheus = prometheus.replace("docs/examples/usage", f"{tmp_path}")
    prometheus += f" --web.listen-address=127.0.0.1:{port} --storage.tsdb.path={tmp_path}/data"
    state.mkdir(parents=True)
    (state / "cluster.yaml").write_text(
        f"cluster_id: {DEMO_CLUSTER_ID}\nconnection: demo\n"
        "usage: {prometheus: monitoring, match: {cluster: demo}, step: 5s}\n"
    )
    (state / "team.yaml").write_text(
        "owner: team\nquotas:\n  - {user: ANONYMOUS, limits: {producer_byte_rate: 1 MB}}\n"
    )
    (tmp_path / "connections").mkdir()
    connection = tmp_path / "connections/monitoring.properties"
    connection.write_text(f"url=http://127.0.0.1:{port}\n")
    for name in ("sandbox", "connections"):
        monkeypatch.setenv(f"QUOTA_OPS_{name.upper()}", str(tmp_path / name))
    monkeypatch.setenv("JAR", str(fetch_agent()))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    subprocess.run(["/bin/bash", "-ec", sandbox], cwd=ROOT, check=True)
    server = subprocess.Popen(["/bin/bash", "-c", f"exec {prometheus}"], stderr=subprocess.DEVNULL)
    try:
        options = f"demo --desired-state {tmp_path}/state --run-store {tmp_path}/store"
        subprocess.run(["/bin/bash", "-ec", f"quota-ops reconcile {options}"], check=True)
        producer = Producer({"bootstrap.servers": find_sandbox().bootstrap})
        probed, end = "", time.monotonic() + 90
        while "measured" not in probed and time.monotonic() < end:
            producer.produce("load", b"x")
            producer.flush(5)
            probe = ["/bin/bash", "-c", f"quota-ops usage {options} --probe"]
            probed = subprocess.run(probe, capture_output=True, text=True, check=False).stdout
        assert re.search("^producer_byte_rate +1 +1 +measured$", probed, re.MULTILINE), probed
    finally:
        server.terminate()
        server.wait(20)
        stop_sandbox()


@pytest.mark.parametrize(
    ("rules", "field"), [("before_2023.yml", "merged_users"), ("kraft.yml", "named_after_clients")]
)
def test_rules_that_lose_names_are_recognized(
    rules: str, field: str, measured: Callable[[Path], Iterator[str]]
) -> None:
    """The probe recognizes rules that put users elsewhere, which no preset can read."""
    for url in measured(HERE / "rules" / rules):
        found, _ = probe(url, Preset.JMX_EXPORTER)
        assert getattr(found, field) > 0
