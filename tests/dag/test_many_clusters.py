"""What Airflow parses for many clusters: one DAG at a task start, and no path of the checkout."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from quota_ops.desired.read import read_policy
from quota_ops.model.plans.policy import Policy
from tests.dag.repository import ALICE, Repository

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository of three clusters; one has an invalid cluster.yaml."""
    repository = Repository(tmp_path)
    repository.cluster("demo", cluster_id="AAAAAAAAAAAAAAAAAAAAAA", payments=ALICE)
    repository.add_policy("demo", 'schedule: "*/30 * * * *"')
    repository.cluster("never", cluster_id="BBBBBBBBBBBBBBBBBBBBBB")
    repository.cluster("odd one", cluster_id="[")
    return repository


@pytest.mark.usefixtures("repository")
def test_a_commit_that_changes_no_dag_makes_no_version(tmp_path: Path) -> None:
    """The DAGs of two checkouts at different paths and commits are the same to Airflow."""
    other = tmp_path / "git" / "3f2c9d1"
    shutil.copytree(tmp_path / "desired_state", other / "desired_state")
    (other / "desired_state" / "demo" / "payments.yaml").write_text(ALICE.replace("1000", "2000"))
    (other / "README.md").write_text("An unrelated commit\n")

    hashes, others = (_hash_dags(path / "desired_state") for path in (tmp_path, other))

    assert hashes == others
    assert len(hashes) == 4


def _hash_dags(desired_state: Path) -> dict[str, str]:
    """Return the hash by which Airflow decides whether a DAG has a new version, by DAG id."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.serialized_objects import DagSerialization

    from quota_ops.airflow import build_dags

    dags = build_dags(desired_state)
    serialized = {dag_id: DagSerialization.to_dict(dag) for dag_id, dag in dags.items()}
    assert str(desired_state.parent) not in json.dumps(serialized)
    hash_dag: Any = SerializedDagModel.hash
    return {dag_id: hash_dag(one) for dag_id, one in serialized.items()}


@pytest.mark.parametrize("wanted", ["reconcile_demo", "reconcile_odd_one", "drift", "not_ours"])
def test_a_task_start_builds_only_its_dag(
    wanted: str, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When Airflow starts a task, only the DAG of the task is built, and no other file is read."""
    from quota_ops.airflow import build_dags, reconcile

    read: list[str] = []

    def read_one(folder: Path) -> Policy:
        read.append(folder.name)
        return read_policy(folder)

    monkeypatch.setattr(reconcile, "read_policy", read_one)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", wanted)

    dags = build_dags(repository.root / "desired_state")

    assert set(dags) == {wanted} - {"not_ours"}
    names = {"reconcile_demo": ["demo"], "reconcile_odd_one": ["odd one"]}
    assert read == names.get(wanted, [])


def test_the_options_of_many_clusters(repository: Repository) -> None:
    """The ids have a prefix, schedules are spread, and each DAG names the pools that it needs."""
    from airflow.dag_processing.dagbag import DagBag

    repository.add_policy("demo", "usage: {prometheus: away, match: {cluster: demo}}")
    dags = repository.root / "dags"
    dags.mkdir()
    (dags / "quotas.py").write_text((ROOT / "docs" / "examples" / "many_clusters.py").read_text())
    bag = DagBag(dag_folder=dags)

    assert bag.import_errors == {}
    names = ("reconcile_demo", "reconcile_never", "reconcile_odd_one", "drift", "record_use")
    assert set(bag.dags) == {f"quotas_{name}" for name in names}
    demo: Any = bag.dags["quotas_reconcile_demo"]
    assert [cron.expression for cron in demo.schedule.timetables] == ["2,32 * * * *"]
    assert [task.task_id for task in demo.tasks if task.pool == "default_pool"] == ["check"]
    command = "airflow pools set quotas 16 quota-ops"
    assert all(command in str(dag.doc_md) for dag in bag.dags.values())
