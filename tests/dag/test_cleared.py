"""An old DAG run that a person clears."""

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from quota_ops.desired.read import read_policy
from quota_ops.kafka.cluster import Cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.runs.outcome import Status
from quota_ops.stages.succession import begin
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import APPLIED, BEGAN, PLAN, POLICY
from quota_ops.store.run.folder import RunFolder
from tests.dag.answering import reject
from tests.dag.repository import Quotas, Repository

OLD, OLDER, TWICE, OLDEST = (datetime(2026, 11, day, tzinfo=UTC) for day in (14, 13, 12, 11))
"""A date for each test: Airflow deletes a run if another has the same date."""
RUN = "reconcile_demo__manual__{}"


def git(repository: Repository, command: str) -> str:
    """Run Git in the desired state and return its output."""
    call = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *command.split()]
    folder = repository.root / "desired_state"
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, check=True).stdout


def committed(repository: Repository) -> str:
    """Commit the desired state and return the commit."""
    git(repository, "init -q")
    git(repository, "add .")
    git(repository, "commit -q -m quotas")
    return git(repository, "rev-parse HEAD").strip()


@pytest.mark.usefixtures("embedded")
def test_an_old_run_that_finds_a_newer_commit(demo: Repository, broker: RunningBroker) -> None:
    """The run gets the commit whose YAML it reads now, not the one of its first try."""
    store = RunStore(open_place(demo.store))
    RunFolder.start(
        store.new_run("demo", RUN.format(OLD.isoformat())), cluster="demo", commit="old"
    )
    newer = committed(demo)

    run = demo.run("reconcile_demo", at=OLD)

    assert run.state == "success"
    assert run.folder().about().commit == newer
    assert run.folder().read_json(BEGAN) == {"commit": newer, "after": None}
    assert ledger.read(store.of_cluster(broker.config.cluster_id)).notes.commits == (newer,)


@pytest.mark.usefixtures("embedded")
def test_a_run_that_failed_and_was_overtaken(
    demo: Repository, quotas: Quotas, broker: RunningBroker
) -> None:
    """A cleared run needs approval if a later commit was applied instead of its own."""
    store, mine = RunStore(open_place(demo.store)), committed(demo)
    failed = RunFolder.start(
        store.new_run("demo", RUN.format(OLDER.isoformat())), cluster="demo", commit=mine
    )
    policy = read_policy(demo.root / "desired_state" / "demo")
    failed.write(POLICY, policy)
    begin(failed)
    records = store.of_cluster(broker.config.cluster_id)
    ledger.change(records, lambda _rows: None, policy=policy, commit="later")

    run = demo.run("reconcile_demo", reject("an old run"), at=OLDER)

    assert (run.state, run.tasks["approve"]) == ("failed", "failed")
    (guard,) = run.folder().read_json(PLAN)["guards"]
    assert guard["message"] == f"later was applied after this run of commit {mine[:7]} began"
    assert quotas.stored() == {}


# Airflow itself warns when it deletes a DAG run whose DAG other tests have run in other versions.
@pytest.mark.filterwarnings("ignore:Multiple rows returned:sqlalchemy.exc.SAWarning")
@pytest.mark.usefixtures("embedded")
def test_an_override_for_an_earlier_plan(demo: Repository, quotas: Quotas) -> None:
    """A cleared run overrides no guard of another plan: it waits, as without the param."""
    committed(demo)
    quotas.set({"user=alice producer_byte_rate": 900})
    override: dict[str, Any] = {"allow": ["takeover"], "reason": "agreed in PLAT-12"}
    assert demo.run("reconcile_demo", at=OLDEST, **override).state == "success"
    assert quotas.stored() == {"user=alice producer_byte_rate": 1000.0}
    quotas.set({"user=bob producer_byte_rate": 900})
    payments = demo.root / "desired_state" / "demo" / "payments.yaml"
    payments.write_text(payments.read_text().replace("user: alice", "user: [alice, bob]"))
    git(demo, "commit -q -a -m bob")

    run = demo.run("reconcile_demo", reject("not agreed"), at=OLDEST, **override)

    assert (run.state, run.tasks["approve"]) == ("failed", "failed")
    (guard,) = run.folder().read_json(PLAN)["guards"]
    assert (guard["guard"], guard["allowed"]) == ("takeover", None)
    assert quotas.stored()["user=bob producer_byte_rate"] == 900.0


@pytest.mark.matrix
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("embedded")
def test_a_task_that_runs_twice_at_once(
    demo: Repository, quotas: Quotas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second try of apply that starts while the first still writes fails, and writes nothing."""
    second: list[subprocess.CompletedProcess[str]] = []
    apply = Cluster.apply

    def start_second(cluster: Cluster, alterations: Any) -> Any:
        run_id = f"manual__{TWICE.isoformat()}"
        command = ["-m", "airflow", "tasks", "test", "reconcile_demo", "apply", run_id]
        second.append(
            subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
        )
        return apply(cluster, alterations)

    monkeypatch.setattr(Cluster, "apply", start_second)
    run = demo.run("reconcile_demo", at=TWICE)

    (ended,) = second
    output = ended.stdout + ended.stderr
    assert "another process has been applying run demo/" in output
    assert "Nothing was written." in output
    assert quotas.stored() == {"user=alice producer_byte_rate": 1000.0}
    (outcome,) = run.folder().outcomes(APPLIED)
    assert outcome.status is Status.ACCEPTED
