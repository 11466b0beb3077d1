"""The task group QuotaReconcile in a DAG of a user, and the options of tasks."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from tests.broker_config import password_of
from tests.dag.repository import ALICE, Quotas, Repository
from tests.dag.test_connection import LOGIN
from tests.dag.test_reconcile import ALICE_HAS_1000, DONE

OWN = """\
from pathlib import Path
from airflow.sdk import DAG, task
from airflow.sdk.exceptions import AirflowSkipException
from quota_ops.airflow import QuotaReconcile
from tests.dag.told import told

@task
def before(ends):
    if ends == "skipped":
        raise AirflowSkipException("not today")
    raise ValueError(ends)

@task
def announce():
    pass

with DAG("release", schedule=None):
    after = announce()
    for name, ends in {{"eu": "skipped", "us": "failed"}}.items():
        group = QuotaReconcile(cluster=name, desired_state=Path({0!r}), notify=told({2!r}))
        before.override(task_id="before_" + name)(ends) >> group >> after
"""


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "own_dag.py"
BESIDE = 'Path(__file__).parents[1] / "desired_state"'


@pytest.fixture
def own(
    repository: Repository,
    broker: RunningBroker,
    secured_broker: RunningBroker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Repository]:
    """Yield a repository of two clusters, and a DAG file of a user."""
    for name, one, listener in (("eu", broker, "PLAINTEXT"), ("us", secured_broker, "SASL")):
        host, _, port = one.bootstrap(listener).partition(":")
        conn = {"conn_type": "kafka", "host": host, "port": int(port)}
        if listener == "SASL":
            conn |= {"login": "admin", "password": password_of("admin"), "extra": LOGIN["extra"]}
        monkeypatch.setenv(f"AIRFLOW_CONN_QUOTA_OPS_{name.upper()}", json.dumps(conn))
        repository.cluster(name, cluster_id=one.config.cluster_id, payments=ALICE)
    yield replace(repository, dag_file=OWN)
    Quotas(secured_broker).clear()


CLUSTERS = ("eu", "us")
SKIPPED = dict.fromkeys(DONE, "skipped")
STOPPED = dict.fromkeys(DONE, "upstream_failed") | {
    "validate": "skipped",
    "verify": "skipped",
    "report": "failed",
}


@pytest.mark.usefixtures("embedded")
def test_clusters_between_tasks_of_a_user(
    own: Repository, quotas: Quotas, secured_broker: RunningBroker
) -> None:
    """The DAG of the documentation reconciles two clusters between two tasks of its own."""
    example = EXAMPLE.read_text()
    assert BESIDE in example
    example = example.replace("{", "{{").replace("}", "}}").replace(BESIDE, "Path({!r})")
    run = replace(own, dag_file=example).run("onboard_teams")
    assert (run.state, set(run.tasks.values())) == ("success", {"success"})
    groups = {f"reconcile_{name}.{task}" for name in CLUSTERS for task in DONE}
    assert run.tasks.keys() == {"create_users", "announce"} | groups
    folders = [run.folder(name).place.name.partition("__")[0] for name in CLUSTERS]
    assert folders == ["onboard_teams"] * 2
    assert quotas.stored() == Quotas(secured_broker).stored() == ALICE_HAS_1000


def test_a_task_before_a_group_that_does_not_succeed(own: Repository, quotas: Quotas) -> None:
    """If the task before a group is skipped, so is the group. If it fails, so does its report.

    Neither leaves a run in the run store, or sends a notification.
    """
    run = own.run("release")
    groups = {
        f"reconcile_{cluster}.{name}": state
        for cluster, states in zip(CLUSTERS, (SKIPPED, STOPPED), strict=True)
        for name, state in states.items()
    }
    assert (run.state, run.tasks) == (
        "failed",
        groups | {"before_eu": "skipped", "before_us": "failed", "announce": "upstream_failed"},
    )
    assert not (own.store / "runs").exists()
    assert not own.told.exists()
    assert quotas.stored() == {}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a desired state of two clusters."""
    repository = Repository(tmp_path)
    for name in ("demo", "eu.1"):
        repository.cluster(name, cluster_id="AAAAAAAAAAAAAAAAAAAAAA", payments=ALICE)
    return tmp_path / "desired_state"


def test_the_options_of_tasks(folder: Path) -> None:
    """The more specific setting wins: a task's options, the group's, the DAG's, quota-ops's."""
    from airflow.sdk import DAG, TaskGroup

    from quota_ops.airflow import QuotaReconcile

    def page(_context: Any) -> None:
        """Call somebody."""

    defaults: Any = {"queue": "outer", "trigger_rule": "all_done"}
    with (
        DAG(
            "own", schedule=None, default_args={"owner": "dag", "retries": 5, "queue": "dag"}
        ) as dag,
        TaskGroup("outer", default_args=defaults),
    ):
        group = QuotaReconcile(
            "eu.1",
            folder,
            approvers=["olga", {"id": "3", "name": "ivan"}],
            default_args={"pool": "kafka", "on_failure_callback": page},
            task_options={
                "diff": {"pool": "spark", "executor_config": {"cpu": 2}},
                "approve": {"owner": "platform", "retries": 7},
            },
        )
    assert group.group_id == "outer.reconcile_eu_1"
    found: dict[str, Any] = {task.task_id.rpartition(".")[2]: task for task in dag.tasks}
    settings = {
        name: (task.owner, task.queue, task.pool, task.retries) for name, task in found.items()
    }
    assert settings == dict.fromkeys(DONE, ("dag", "outer", "kafka", 5)) | {
        "check": ("dag", "outer", "default_pool", 5),
        "diff": ("dag", "outer", "spark", 5),
        "approve": ("platform", "outer", "kafka", 7),
    }
    assert found["approve"].assigned_users == [
        {"id": "olga", "name": "olga"},
        {"id": "3", "name": "ivan"},
    ]
    assert found["diff"].executor_config == {"cpu": 2}
    assert {task.execution_timeout for task in dag.tasks} == {timedelta(minutes=30)}
    assert found["apply"].trigger_rule == "all_success"
    assert found["report"].on_failure_callback[0] == found["plan"].on_failure_callback[0] == page
    assert len(found["report"].on_failure_callback) == 2


def test_the_options_of_all_dags(folder: Path) -> None:
    """`build_dags` gives default arguments and options to its own DAGs, the drift DAG included."""
    from quota_ops.airflow import build_dags

    options: Any = {"diff": {"queue": "spark"}, "overview": {"pool": "reports"}}
    dags = build_dags(folder, default_args={"owner": "platform"}, task_options=options)
    for dag in dags.values():
        assert {task.owner for task in dag.tasks} == {"platform"}
        assert {task.task_id for task in dag.tasks if task.queue == "spark"} == {"diff"}
        assert {task.retries for task in dag.tasks} <= {3, 10}
    assert dags["drift"].get_task("overview").pool == "reports"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "cluster": ({"cluster": "eu"}, "has no cluster 'eu'\n  Its clusters are: demo, eu.1."),
    "task": (
        {"task_options": {"aply": {}}},
        "task_options has an unknown task: 'aply'\n  Did you mean 'apply'? The tasks are check, ",
    ),
    "option": (
        {"task_options": {"diff": {"trigger_rule": "all_done"}}},
        "task_options['diff'] has an unknown option: 'trigger_rule'\n  The options are owner, ",
    ),
    "no approver": ({"approvers": []}, "approvers is [], which is not a list of users"),
    "one approver": ({"approvers": "olga"}, "approvers is 'olga', which is not a list of users"),
    "a number": ({"approvers": ["olga", 3]}, "approvers has 3, which is not a user"),
    "engine": ({"engine": "duckdb"}, "no engine 'duckdb'\n  The engines are spark and embedded."),
    "event": ({"notify": {"late night": []}}, "notify has unknown events: late night"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_in_a_dag_file(case: str, folder: Path) -> None:
    """An unknown cluster, task, option or event is an error when the DAG file is parsed."""
    from airflow.sdk import DAG

    from quota_ops.airflow import QuotaReconcile

    changed, message = WRONG[case]
    arguments: dict[str, Any] = {"cluster": "demo", "desired_state": folder, **changed}
    with DAG("own", schedule=None), pytest.raises(InvalidInput) as error:
        QuotaReconcile(**arguments)
    assert message in str(error.value)


def test_a_dag_reconciles_a_cluster_once(folder: Path) -> None:
    """A second group of the same cluster is an error, as is one in a mapped group."""
    from airflow.sdk import DAG, task_group

    from quota_ops.airflow import QuotaReconcile

    twice = "two task groups for the cluster demo: a and b"
    with DAG("own", schedule=None):
        QuotaReconcile("demo", folder, group_id="a")
        with pytest.raises(InvalidInput, match=twice):
            QuotaReconcile("demo", folder, group_id="b")

    @task_group
    def each(number: int) -> None:
        del number
        QuotaReconcile("demo", folder)

    with (
        DAG("own", schedule=None),
        pytest.raises(InvalidInput, match="demo is inside a mapped task group"),
    ):
        each.expand(number=[1, 2])
