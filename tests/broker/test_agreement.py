"""Every output of a run gives the same verdict, numbers and exit code."""

import json
from html import unescape
from pathlib import Path
from shlex import split
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.specification import format_flags
from quota_ops.store.run.files import PAGE, REPORT
from tests.lab import Lab
from tests.writing import State
from tests.yaml_cases import load_yaml

KEY = "producer_byte_rate"
CASES = load_yaml((Path(__file__).parents[1] / "cases/agreement/report.yaml").read_text())
BEFORE = {"user=carol": 10485760.0, "user=<default>": 20971520.0}
HOLD = ("hold", "demo", "--until", "2h", "--reason", "x")
ADOPT = ("adopt", "demo", "--reason", "x")
METRICS = ("in_sync", "pending", "overriding", "returned", "held", "not_judged", "unmanaged")


def state(values: dict[str, float]) -> State:
    """Return quotas of one key."""
    return {entity: {KEY: float(value)} for entity, value in values.items()}


def put(lab: Lab, case: dict[str, Any]) -> None:
    """Put Git, the cluster, the holds and the connection into the situation of a case."""
    policy = case.get("policy", {})
    lab.desire(state(BEFORE), **policy)
    assert (
        lab.call("reconcile", "demo", "--allow", "default_touched", "--reason", "x").returncode == 0
    )
    lab.desire(state(BEFORE | case.get("git", {})), **policy, **case.get("new_policy", {}))
    lab.put(state(case.get("cluster", {})))
    for command in (HOLD, ADOPT):
        if command[0] in case:
            names = split(format_flags(Entity.parse(case[command[0]])))
            assert lab.call(*command, *names).returncode == 0
    if "invalid" in case:
        (lab.folder / "search.yaml").write_text("owner: search\nquotas: none\n")
    if "unreachable" in case:
        lab.connection_file.write_text("bootstrap.servers=127.0.0.1:1\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["case"]))
def test_every_output_agrees(case: dict[str, Any], lab: Lab) -> None:
    """The screen, both reports, JSON, the metrics and the exit code tell the same of a cluster."""
    put(lab, case)

    shown = lab.call("report", "demo")

    run = lab.runs[-1]
    report = run.read_json(REPORT)
    counts = {name: number for name, number in report["counts"].items() if number}
    assert (shown.returncode, report["answer"], counts) == (
        case["exit"],
        case["answer"],
        case["counts"],
    )
    (in_text,) = {
        line
        for line in (run.place / "report.txt").read().decode().splitlines()
        if report["answer"]["sentence"] in line
    }
    assert in_text
    protected = "not in force for all clients" in report["answer"]["sentence"]
    assert [row["entity"] for row in report["protected"]] == [*case.get("cluster", {})] * protected
    page = unescape((run.place / PAGE).read().decode())
    assert all(part in page for part in report["answer"]["sentence"].rstrip(".").split("; "))
    if "head" in case:
        assert case["head"] in shown.stdout
        assert lab.call("verify", "demo").stdout.splitlines()[-1] == case["verify"]
        assert lab.call("report", "demo").returncode == case["exit"]
    metrics = {
        (sample.name.removeprefix("quota_ops_"), sample.labels.get("kind")): sample.value
        for family in parse(lab.call("metrics").stdout)
        for sample in family.samples
    }
    assert metrics["cluster_compared", None] == (report["plan"] is not None)
    if report["plan"] is not None:
        for name in METRICS:
            assert metrics[f"quotas_{name}", None] == case["counts"].get(name, 0), name
        drifted = sum(value for (name, _), value in metrics.items() if name == "quotas_drifted")
        assert drifted == case["counts"].get("drifted", 0)
        assert metrics["files_invalid", None] == len(report["invalid"])
        (day,) = json.loads(lab.call("history", "demo", "--format", "json").stdout)["days"][-1:]
        assert {name: day[name] or 0 for name in METRICS} == {
            name: case["counts"].get(name, 0) for name in METRICS
        }
