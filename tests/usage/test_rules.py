"""Limits as metrics, and the rules that join them with use."""

import json
import shutil
import subprocess
from math import inf
from pathlib import Path

import pytest

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.usage import Preset, UsagePolicy
from quota_ops.report.records.metrics import format_metrics, label_limits
from tests.usage.recording import read_recorded
from tests.usage.scenario import ENCODED, QUOTED
from tests.yaml_cases import load_yaml

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "docs/examples/usage"
KEY = "producer_byte_rate"
ROWS = [
    (Entity.of({"user": ENCODED}), KEY, 250_000.0),
    (Entity.of({"client-id": QUOTED}), KEY, 5.0),
    (Entity.of({"user": "free", "client-id": None}), "request_percentage", 2_147_483_647.0),
    (Entity.of({"user": None}), "controller_mutation_rate", 10.0),
    (Entity.of({"ip": "10.0.0.1"}), "connection_creation_rate", 10.0),
]
POLICY = UsagePolicy("monitoring", match=(("cluster", "prod-orders"),))


def test_limits_have_the_labels_of_use() -> None:
    """A limit has the labels of its series: encoded as brokers do, and the cluster of `match`."""
    limits = list(label_limits("orders", POLICY, ROWS, {(ROWS[0][0], KEY): "payments"}))
    assert format_metrics([], limits).partition("# HELP quota_ops_limit ")[2] == (
        "Limits that the cluster stores, in the unit of their use.\n"
        "# TYPE quota_ops_limit gauge\n"
        'quota_ops_limit{cluster="prod-orders",level="user",owner="payments",resource="Produce",'
        'user="svc%3Apay%2F1%2A%20x"} 250000.0\n'
        'quota_ops_limit{clientId="\\"anon app:1\\\\*/ü, \\\\\\"q\\\\\\"=1\\"",'
        'cluster="prod-orders",'
        'level="client-id",owner="",resource="Produce"} 5.0\n'
        'quota_ops_limit{cluster="prod-orders",level="user+client-id-default",owner="",'
        'resource="Request",user="free"} +Inf\n'
        'quota_ops_limit{cluster="prod-orders",level="user-default",owner="",'
        'resource="ControllerMutation"} 10.0\n'
    )
    recorded = [
        series["metric"]
        for answer in read_recorded().values()
        for series in json.loads(answer.body)["data"]["result"]
    ]
    user, client_id = limits[0].labels["user"], limits[1].labels["clientId"]
    assert user in {series.get("user") for series in recorded}
    assert client_id in {series.get("clientId") for series in recorded}


def test_other_presets_have_other_labels() -> None:
    """The labels are those of the preset; not every exporter has JMX's quotes."""
    reporter = UsagePolicy("monitoring", Preset.STRIMZI_REPORTER)
    labels = [dict(limit.labels) for limit in label_limits("orders", reporter, ROWS[1:2], {})]
    assert labels == [
        {"cluster": "orders", "resource": "Produce", "level": "client-id", "owner": ""}
        | {"client_id": QUOTED}
    ]
    assert [limit.value for limit in label_limits("orders", None, ROWS[2:3], {})] == [inf]


def test_strimzi_gets_the_same_rules() -> None:
    """The ConfigMap for Strimzi has the rules of the JMX exporter's file."""
    config = load_yaml((EXAMPLES / "strimzi.yaml").read_text(encoding="utf-8"))
    rules = load_yaml(config["data"]["kafka-metrics-config.yml"])["rules"]
    own = load_yaml((EXAMPLES / "jmx_exporter.yml").read_text(encoding="utf-8"))["rules"]
    assert rules == own


@pytest.mark.matrix
def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    """The rules to copy take the limit of the level that decides, and alert as they say."""
    for file in (EXAMPLES / "prometheus_rules.yml", HERE / "rules_test.yml"):
        shutil.copy(file, tmp_path)
    ended = subprocess.run(
        ["promtool", "test", "rules", "rules_test.yml"],  # noqa: S607 - Debian's package
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
