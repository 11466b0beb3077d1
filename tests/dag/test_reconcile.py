"""Each result of the reconcile DAG on a real broker: the state of every task, and the writes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quota_ops.desired.read import Desired, read_cluster
from quota_ops.kafka.cluster import Cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.store.run.folder import RunFolder
from tests.dag.asset_events import list_events
from tests.dag.repository import ALICE, DAG_FILE, DagRun, Quotas, Repository

STAGES = ("check", "describe", "diff", "plan", "validate", "apply", "verify", "report")
DONE = dict.fromkeys((*STAGES, "approve"), "success")
STOPPED = {"approve": "upstream_failed"}
NOT_APPLIED = {"apply": "upstream_failed", "verify": "skipped", "report": "failed"}
ALICE_HAS_1000 = {"user=alice producer_byte_rate": 1000.0}


def said(run: DagRun, stage: str) -> str:
    """Return the message of a stage that did not succeed."""
    return str(run.folder().stage_result(stage).message)


def test_without_spark(demo: Repository, quotas: Quotas) -> None:
    """With `engine="embedded"` a run makes the broker match Git without starting Java."""
    without = replace(demo, dag_file=DAG_FILE.replace("notify=", 'engine="embedded", notify='))
    run = without.run("reconcile_demo")
    assert (run.state, run.tasks) == ("success", DONE)
    assert quotas.stored() == ALICE_HAS_1000
    assert list((demo.store / "ledger").iterdir())


@pytest.mark.usefixtures("embedded")
def test_nothing_to_do(demo: Repository, quotas: Quotas, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without changes still verifies and reports; each stage records its end once.

    An end recorded too early would be wrong if the worker is then killed. Only apply, which sends,
    also records at its start that it has not ended.
    """
    told: list[str] = []
    write = RunFolder.write_json

    def write_json(folder: RunFolder, name: str, values: dict[str, Any]) -> None:
        told.extend([name] if name.startswith("stage-") else [])
        write(folder, name, values)

    monkeypatch.setattr(RunFolder, "write_json", write_json)
    quotas.set(ALICE_HAS_1000)
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks) == ("success", DONE)
    assert run.folder().batches() == {}
    once_more = {"apply": 2}
    names = [stage for stage in STAGES for _ in range(once_more.get(stage, 1))]
    assert told == [f"stage-{stage}.json" for stage in names]
    assert run.folder().read_json("verification.json")["verified"] == 1
    assert list_events(demo) == []


@pytest.mark.usefixtures("embedded")
def test_refused_by_a_guard(
    demo: Repository,
    quotas: Quotas,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """With `approval: never` a guard ends the run; the next one overrides it by params."""
    demo.add_policy("demo", "approval: never")
    quotas.set({"user=alice producer_byte_rate": 900})
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks) == ("failed", DONE | {"plan": "failed"} | STOPPED | NOT_APPLIED)
    assert "takeover" in said(run, "plan")
    assert "so only --allow overrides guards: takeover" in caplog.text
    assert "Task exited" in (log := capfd.readouterr().out)
    assert "Traceback" not in log
    assert quotas.stored() == {"user=alice producer_byte_rate": 900.0}

    run = demo.run("reconcile_demo", allow=["takeover", "cut"], reason="agreed with payments")
    assert (run.state, run.tasks) == ("success", DONE)
    assert "the param allow contains cut: that guard did not block anything" in caplog.text
    assert quotas.stored() == ALICE_HAS_1000


@pytest.mark.usefixtures("embedded")
def test_a_task_that_a_person_marked(demo: Repository, caplog: pytest.LogCaptureFixture) -> None:
    """A run fails if a task counts as successful in Airflow, and its stage did not run."""
    run = demo.run("reconcile_demo", marked="verify")
    assert (run.state, run.tasks) == ("failed", DONE | {"report": "failed"})
    assert "successful in Airflow, but not in this run: verify" in caplog.text


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"allow": ["takeover"]}, "reason is empty"),
        ({"alow": ["takeover"], "reason": "a test"}, "the DAG has no param alow"),
    ],
)
def test_a_guard_that_is_not_overridden(demo: Repository, params: dict[str, Any], why: str) -> None:
    """Overriding a guard without a reason, or by a misspelled param, fails."""
    run = demo.run("reconcile_demo", **params)
    assert (run.state, run.tasks) == ("failed", DONE | {"plan": "failed"} | STOPPED | NOT_APPLIED)
    assert why in said(run, "plan")


@pytest.mark.usefixtures("embedded")
def test_refused_by_the_broker(
    demo: Repository, quotas: Quotas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rejection at validate ends the run before its first write, without a retry."""

    def read_less_strictly(folder: Path, *_: object, **__: object) -> Desired:
        desired = read_cluster(folder)
        row = desired.rows[0]._replace(entity="ip=nowhere.invalid", key="connection_creation_rate")
        return replace(desired, rows=(*desired.rows, row))

    monkeypatch.setattr("quota_ops.desired.read.read_cluster", read_less_strictly)
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks) == (
        "failed",
        DONE | {"validate": "failed"} | STOPPED | NOT_APPLIED,
    )
    assert "not a valid IP or resolvable host" in said(run, "validate")
    assert run.tries["validate"] == 1
    assert quotas.stored() == {}


@pytest.mark.usefixtures("embedded")
def test_broker_gone(demo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable cluster is retried three times, and the report shows it."""
    gone = json.dumps({"conn_type": "kafka", "host": "127.0.0.1", "port": 1})
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", gone)
    run = demo.run("reconcile_demo")
    skipped = dict.fromkeys(("diff", "plan"), "upstream_failed") | {"validate": "skipped"}
    assert run.state == "failed"
    assert run.tasks == DONE | {"describe": "failed"} | skipped | STOPPED | NOT_APPLIED
    assert run.tries["describe"] == 4
    assert "127.0.0.1:1" in said(run, "describe")


@pytest.mark.usefixtures("embedded")
def test_broker_gone_before_apply(demo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify is skipped if nothing can have been written."""
    validate = Cluster.validate

    def then_gone(cluster: Cluster, alterations: Any) -> Any:
        gone = json.dumps({"conn_type": "kafka", "host": "127.0.0.1", "port": 1})
        monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", gone)
        return validate(cluster, alterations)

    monkeypatch.setattr(Cluster, "validate", then_gone)
    run = demo.run("reconcile_demo")
    ends = {"apply": "failed", "verify": "skipped", "report": "failed"}
    assert (run.state, run.tasks, run.tries["apply"]) == ("failed", DONE | ends, 4)


@pytest.mark.usefixtures("embedded")
def test_invalid_yaml(demo: Repository, caplog: pytest.LogCaptureFixture) -> None:
    """An invalid file among others makes the last task fail, once the others are applied."""
    folder = demo.root / "desired_state" / "demo"
    (folder / "payments.yaml").write_text("owner: payments\n")
    (folder / "search.yaml").write_text(ALICE.replace("owner: payments", "owner: search"))
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks) == ("failed", DONE | {"report": "failed"})
    assert "payments.yaml (owner payments) is invalid: line 1: " in caplog.text


def test_a_cluster_file_that_does_not_parse(demo: Repository) -> None:
    """The DAG of a cluster with an invalid cluster.yaml has no schedule; its check fails."""
    (demo.root / "desired_state" / "demo" / "cluster.yaml").write_text("cluster_id: [\n")
    assert demo.dags()["reconcile_demo"].schedule is None
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks["check"], run.tasks["report"]) == ("failed", "failed", "failed")
    assert "cluster.yaml:" in said(run, "check")


def test_two_folders_of_one_cluster(demo: Repository, broker: RunningBroker) -> None:
    """If two folders declare one cluster, neither is reconciled: each would undo the other."""
    demo.cluster("twin", cluster_id=broker.config.cluster_id)
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks["check"]) == ("failed", "failed")
    assert "is already declared at" in said(run, "check")


def test_no_run_store(
    demo: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a run store a run fails at once: a ledger in a worker's home would be lost."""
    monkeypatch.delenv("QUOTA_OPS_RUN_STORE")
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks["check"]) == ("failed", "failed")
    assert "Set QUOTA_OPS_RUN_STORE on every worker" in caplog.text


def test_git_does_not_tell_the_commit(demo: Repository, quotas: Quotas) -> None:
    """Without a known commit, an old one could not be detected, so the run ends at check."""
    (demo.root / "desired_state" / ".git").mkdir()
    run = demo.run("reconcile_demo")
    assert (run.state, run.tasks["check"]) == ("failed", "failed")
    assert "Git cannot determine the commit" in said(run, "check")
    assert quotas.stored() == {}
