"""What Airflow finds in a DAG file, without a database: ids, order, rules, schedules, params."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from quota_ops.model.errors import InvalidInput
from quota_ops.model.guard import Guard
from tests.dag.repository import ALICE, Repository

PARSE = """
import sys
from pathlib import Path
from quota_ops.airflow import build_dags
dags = build_dags(Path(sys.argv[1]))
heavy = {"pyspark", "pyarrow", "duckdb", "kafka", "confluent_kafka"} & sys.modules.keys()
print(len(dags), *heavy)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository of four clusters: two do not parse, one has lost its cluster.yaml."""
    repository = Repository(tmp_path)
    repository.cluster("demo", cluster_id="AAAAAAAAAAAAAAAAAAAAAA", payments=ALICE)
    with (tmp_path / "desired_state" / "demo" / "cluster.yaml").open("a") as file:
        file.write('schedule: "*/30 * * * *"\n')
    repository.cluster("odd one", cluster_id="[")
    repository.cluster("never", cluster_id="BBBBBBBBBBBBBBBBBBBBBB")
    with (tmp_path / "desired_state" / "never" / "cluster.yaml").open("a") as file:
        file.write('schedule: "0 0 * * mon-foo"\n')
    repository.cluster("lost", cluster_id="x", payments=ALICE)
    (tmp_path / "desired_state" / "lost" / "cluster.yaml").unlink()
    return repository


def shape(dag: Any) -> dict[str, tuple[str, list[str]]]:
    """Each task's trigger rule, and what comes after it."""
    return {
        task.task_id: (task.trigger_rule.value, sorted(task.downstream_task_ids))
        for task in dag.tasks
    }


def test_the_dags_of_a_repository(repository: Repository) -> None:
    """A reconcile DAG per cluster, also for those that do not parse, and one drift DAG."""
    dags = repository.dags()
    schedules: dict[str, Any] = {name: dag.schedule for name, dag in dags.items()}
    assert schedules == {
        "reconcile_demo": "*/30 * * * *",
        "reconcile_odd_one": None,
        "reconcile_never": None,
        "reconcile_lost": None,
        "drift": "0 * * * *",
    }
    assert all(dag.max_active_runs == 1 and not dag.catchup for dag in dags.values())
    assert "cluster.yaml is invalid" in str(dags["reconcile_odd_one"].doc_md)


def test_the_order_of_reconcile(repository: Repository) -> None:
    """The eight stages in a row; a person's word stands before the first that writes."""
    assert shape(repository.dags()["reconcile_demo"]) == {
        "check": ("all_success", ["describe"]),
        "describe": ("all_success", ["diff"]),
        "diff": ("all_success", ["plan"]),
        "plan": ("all_success", ["approve", "validate"]),
        "validate": ("one_done", ["approve"]),
        "approve": ("all_success", ["apply"]),
        "apply": ("all_success", ["verify"]),
        "verify": ("one_done", ["report"]),
        "report": ("all_done", []),
    }


def test_the_order_of_drift(repository: Repository) -> None:
    """Every cluster described and reported, one diff for all; nothing there writes."""
    assert shape(repository.dags()["drift"]) == {
        "describe": ("all_success", ["diff"]),
        "diff": ("all_done", ["report"]),
        "report": ("all_done", ["overview"]),
        "overview": ("all_done", []),
    }


def test_every_task_ends_some_time_and_uses_no_pool(repository: Repository) -> None:
    """A task in a pool that nobody made would wait for ever, and say nothing."""
    tasks = [task for dag in repository.dags().values() for task in dag.tasks]
    assert {task.pool for task in tasks} == {"default_pool"}
    assert all(task.execution_timeout for task in tasks)


@pytest.mark.parametrize("allow", [["takeover"], [guard.value for guard in Guard], [], None])
def test_guards_that_may_be_allowed(repository: Repository, allow: list[str]) -> None:
    """The param takes every guard there is."""
    Draft202012Validator(_schema(repository)).validate(allow)


@pytest.mark.parametrize("allow", [["everything"], "takeover", [1]])
def test_no_guard(repository: Repository, allow: object) -> None:
    """Anything else is refused by Airflow before a run begins."""
    with pytest.raises(ValidationError):
        Draft202012Validator(_schema(repository)).validate(allow)


def test_the_form_asks_for_nothing(repository: Repository) -> None:
    """Airflow's form has to be filled in where null is not allowed, even if there is a default."""
    params = repository.dags()["reconcile_demo"].params
    assert {name: params[name] for name in params} == {"allow": None, "reason": None}
    assert all("null" in params.get_param(name).schema["type"] for name in params)


def _schema(repository: Repository) -> dict[str, Any]:
    return dict(repository.dags()["reconcile_demo"].params.get_param("allow").schema)


def test_an_empty_repository_has_no_dags(tmp_path: Path) -> None:
    """Where no cluster is, there is nothing to run and no error."""
    (tmp_path / "desired_state").mkdir()
    assert Repository(tmp_path).dags() == {}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A wrong path is an error of the DAG file, not a repository without clusters."""
    from quota_ops.airflow import build_dags

    with pytest.raises(InvalidInput, match="is not a folder"):
        build_dags(tmp_path / "desired-state")


def test_no_link_is_followed_when_a_dag_file_is_parsed(
    repository: Repository, tmp_path: Path
) -> None:
    """A link in place of a cluster has a DAG that names it; one of the desired state has none."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "cluster.yaml").write_text("correct-horse\n")
    (tmp_path / "desired_state" / "leak").symlink_to(secret)

    leak: Any = repository.dags()["reconcile_leak"]

    assert leak.schedule is None
    assert "desired_state/leak:1:1  This is a link" in str(leak.doc_md)
    assert "correct-horse" not in str(leak.doc_md)

    from quota_ops.airflow import build_dags

    (tmp_path / "desired_state").rename(tmp_path / "elsewhere")
    (tmp_path / "desired_state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="desired_state:1:1  This is a link"):
        build_dags(tmp_path / "desired_state")


def test_no_link_inside_a_bundle_is_followed(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow removes a bundle's `.git`; from its folder down a commit can have made any link."""
    from quota_ops.airflow import build_dags

    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path / "bundles"))
    assert repository.dags()
    (tmp_path / "bundles" / "quotas").mkdir(parents=True)
    (tmp_path / "bundles" / "quotas" / "teams").symlink_to(tmp_path)
    (tmp_path / "links").symlink_to(tmp_path)

    assert build_dags(tmp_path / "links" / "desired_state")
    with pytest.raises(InvalidInput, match="bundles/quotas/teams:1:1  This is a link"):
        build_dags(tmp_path / "bundles" / "quotas" / "teams" / "desired_state")


def test_a_dag_file_is_parsed_without_its_quotas(tmp_path: Path) -> None:
    """Airflow parses it again and again: no quota file is read, and nothing heavy imported."""
    repository = Repository(tmp_path)
    for number in range(20):
        repository.cluster(f"c{number}", cluster_id=f"{number:022}", payments="not read: here")
    parsed = subprocess.run(
        [sys.executable, "-c", PARSE, str(tmp_path / "desired_state")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert parsed.stdout.split() == ["21"]


def test_our_own_dags() -> None:
    """The DAG file of this repository gives the DAGs of its desired state."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=Path(__file__).parents[2] / "dags")
    assert bag.import_errors == {}
    assert set(bag.dags) == {"reconcile_demo", "drift"}
