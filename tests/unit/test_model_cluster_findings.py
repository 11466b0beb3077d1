"""Findings of a plan by cases: from the files, the cluster and its brokers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.stages.check import check_desired_state
from quota_ops.stages.plan.findings import write_findings
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import FACTS
from quota_ops.store.run.folder import RunFolder
from tests.unit.report_sample import CLUSTER_ID
from tests.unit.test_model_findings import CLUSTER_YAML, told
from tests.yaml_cases import load_yaml

CASES = tuple(
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted((Path(__file__).parents[1] / "cases/findings/cluster").glob("*.yaml"))
    for case in load_yaml(path.read_text("utf-8"))
)
STAYS, CLEARED = (Kind.UNMANAGED, Action.REPORT), (Kind.REMOVED, Action.CLEAR)


def facts(case: Mapping[str, Any]) -> ClusterFacts | None:
    """Return the facts that the brokers of a case report; None if they were not queried."""
    if not {"brokers", "principal"} & set(case):
        return None
    brokers = (
        BrokerFacts(at, "b:1", network_threads=network, io_threads=io)
        for at, (network, io) in enumerate(case.get("brokers", ()), start=1)
    )
    names = ("scram", "acls")
    scram, acls = (None if case.get(name) is None else frozenset(case[name]) for name in names)
    principal, client_id = case.get("principal", "User:ours"), case.get("client_id", "quota-ops")
    lacks = case.get("lacks_describe", False)
    return ClusterFacts(tuple(brokers), principal, scram, acls, client_id, lacks)


def differences(case: Mapping[str, Any]) -> Iterator[Difference]:
    """Return the rows of a case that Git does not declare."""
    for judged, rows in ((STAYS, case.get("others", {})), (CLEARED, case.get("clears", {}))):
        for entity, values in rows.items():
            for key, value in values.items():
                where = (CLUSTER_ID, entity, key, *judged)
                yield Difference(*where, float(value), None, *(None,) * 10)


@pytest.mark.parametrize("case", CASES)
def test_a_plan_gives_rise_to_findings(case: Any, tmp_path: Path) -> None:
    """A plan has the findings of its files and of the cluster, without those silenced."""
    files = tmp_path / "desired_state" / "demo"
    store = RunStore(open_place(tmp_path / "store"))
    folder = RunFolder.start(store.new_run("demo"), cluster="demo", commit=None)
    files.mkdir(parents=True)
    for name, text in ({"cluster.yaml": CLUSTER_YAML} | case["files"]).items():
        (files / name).write_text(text, "utf-8")
    desired = check_desired_state(folder, files)
    asked = facts(case)
    if asked is not None:
        folder.write(FACTS, asked)
    plan = Plan(desired.policy, None, (), 0, 0, 0, None, differences=tuple(differences(case)))

    write_findings(folder, plan)

    assert sorted(map(told, folder.findings())) == case["findings"]
