"""What Airflow parses from a DAG file: ids, order, rules, schedules, params."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from jsonschema import Draft202012Validator, ValidationError

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.guard import Guard
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
    """A repository of five clusters: two are invalid, one has no cluster.yaml, one a long name."""
    repository = Repository(tmp_path)
    repository.cluster("demo", cluster_id="AAAAAAAAAAAAAAAAAAAAAA", payments=ALICE)
    with (tmp_path / "desired_state" / "demo" / "cluster.yaml").open("a") as file:
        file.write('schedule: "*/30 * * * *"\n')
    repository.cluster("odd one", cluster_id="[")
    repository.cluster("never", cluster_id="BBBBBBBBBBBBBBBBBBBBBB")
    with (tmp_path / "desired_state" / "never" / "cluster.yaml").open("a") as file:
        file.write('schedule: "0 0 * * mon-foo"\n')
    repository.cluster("n" * 101, cluster_id="DDDDDDDDDDDDDDDDDDDDDD")
    repository.cluster("lost", cluster_id="x", payments=ALICE)
    (tmp_path / "desired_state" / "lost" / "cluster.yaml").unlink()
    return repository


def shape(dag: Any) -> dict[str, tuple[str, list[str]]]:
    """Return the trigger rule and the next tasks of each task."""
    return {
        task.task_id: (task.trigger_rule.value, sorted(task.downstream_task_ids))
        for task in dag.tasks
    }


def test_a_run_starts_when_a_temporary_limit_starts_or_ends(repository: Repository) -> None:
    """The schedule has a run at the first whole minute from each such time on, and its own."""
    from airflow.sdk import timezone
    from airflow.timetables.base import TimeRestriction
    from airflow.timetables.trigger import MultipleCronTriggerTimetable

    team = repository.root / "desired_state" / "demo" / "team.yaml"
    team.write_text(
        "owner: team\nquotas:\n"
        "  - {user: a, limits: {producer_byte_rate: 1 MiB}, until: 2999-12-01T18:00:00Z}\n"
        "  - user: b\n    limits: {producer_byte_rate: 1 MiB}\n    overrides:\n"
        "      - from: 2999-11-27T08:30:01Z\n        until: 2999-12-01 19:00 Europe/Berlin\n"
        "        limits: {producer_byte_rate: 2 MiB}\n"
        "      - {until: 2020-12-01T18:00:00Z, limits: {producer_byte_rate: 3 MiB}}\n"
    )

    schedule: Any = repository.dags()["reconcile_demo"].schedule

    assert [timetable.expression for timetable in schedule.timetables] == [
        "*/30 * * * *",
        "31 8 27 11 *",
        "0 18 1 12 *",
    ]
    core = MultipleCronTriggerTimetable(
        *(timetable.expression for timetable in schedule.timetables[1:]), timezone="UTC"
    )
    window = TimeRestriction(timezone.parse("2998-11-27T08:30:00Z"), None, catchup=True)
    following = core.next_dagrun_info(last_automated_data_interval=None, restriction=window)
    assert following is not None
    assert following.run_after.isoformat() == "2998-11-27T08:31:00+00:00"


def test_many_limits_that_ended_hide_none_that_is_to_come(repository: Repository) -> None:
    """The schedule keeps the times of the last day, and has the next ones whatever their number."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    times = [*(now - timedelta(minutes=ago) for ago in range(60, 120)), now + timedelta(hours=1)]
    team = repository.root / "desired_state" / "demo" / "team.yaml"
    team.write_text(
        "owner: team\nquotas:\n"
        + "".join(
            f"  - {{user: u{row}, limits: {{producer_byte_rate: 1 MiB}}, until: {time:%FT%RZ}}}\n"
            for row, time in enumerate(times)
        )
    )
    crons = list_crons(repository.dags()["reconcile_demo"])
    assert len(crons) == 1 + len(times)
    assert crons[-1] == (f"{times[-1]:%-M %-H %-d %-m} *", "UTC")


def list_crons(dag: Any) -> list[tuple[str, str]]:
    """Return the cron expressions of a DAG's schedule, each with its time zone."""
    timetables = dag.schedule.timetables if dag.schedule else ()
    return [(timetable.expression, str(timetable.timezone)) for timetable in timetables]


def test_the_dags_of_a_repository(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cluster has a reconcile DAG, also an invalid one; all share one drift DAG.

    Their schedules are in UTC, whatever time zone Airflow has by default.
    """
    monkeypatch.setattr("airflow.settings.TIMEZONE", ZoneInfo("Europe/Berlin"))
    dags = repository.dags()
    assert {name: list_crons(dag) for name, dag in dags.items()} == {
        "reconcile_demo": [("*/30 * * * *", "UTC")],
        "reconcile_odd_one": [],
        "reconcile_never": [],
        "reconcile_lost": [],
        f"reconcile_{'n' * 101}": [],
        "drift": [("0 * * * *", "UTC")],
    }
    assert all(dag.max_active_runs == 1 and not dag.catchup for dag in dags.values())
    assert "cluster.yaml is invalid" in str(dags["reconcile_odd_one"].doc_md)


def test_the_order_of_reconcile(repository: Repository) -> None:
    """The eight stages run in order, with the approval before the first that writes.

    The diff is a Spark job, which the demo runs in this DAG.
    """
    dag = repository.dags()["reconcile_demo"]
    assert dag.get_task("diff").task_type == "SparkDiff"
    assert shape(dag) == {
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
    """Every cluster is described and reported, with one diff for all, and no task writes."""
    assert shape(repository.dags()["drift"]) == {
        "describe": ("all_success", ["diff"]),
        "diff": ("all_done", ["report"]),
        "report": ("all_done", ["overview"]),
        "overview": ("all_done", []),
    }


def test_every_task_ends_some_time_and_uses_no_pool(repository: Repository) -> None:
    """Every task has a timeout; a task in a pool that does not exist would wait forever."""
    tasks = [task for dag in repository.dags().values() for task in dag.tasks]
    assert {task.pool for task in tasks} == {"default_pool"}
    assert all(task.execution_timeout for task in tasks)


@pytest.mark.parametrize("allow", [["takeover"], [guard.value for guard in Guard], [], None])
def test_guards_that_may_be_allowed(repository: Repository, allow: list[str]) -> None:
    """The param `allow` accepts every guard, none, and null."""
    Draft202012Validator(_schema(repository)).validate(allow)


@pytest.mark.parametrize("allow", [["everything"], "takeover", [1]])
def test_no_guard(repository: Repository, allow: object) -> None:
    """The param `allow` rejects anything but a list of guards."""
    with pytest.raises(ValidationError):
        Draft202012Validator(_schema(repository)).validate(allow)


def test_the_form_asks_for_nothing(repository: Repository) -> None:
    """Every param allows null, because Airflow's form requires a value for all others."""
    params = repository.dags()["reconcile_demo"].params
    assert {name: params[name] for name in params} == {"allow": None, "reason": None}
    assert all("null" in params.get_param(name).schema["type"] for name in params)


def _schema(repository: Repository) -> dict[str, Any]:
    return dict(repository.dags()["reconcile_demo"].params.get_param("allow").schema)


def test_an_empty_repository_has_no_dags(tmp_path: Path) -> None:
    """A repository without clusters has no DAGs, and that is not an error."""
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
    """A link in place of a cluster is named by its DAG; one for desired_state is an error."""
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
    """No link in the folder of a bundle is followed, because a commit may have made it."""
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
    """Parsing a DAG file parses no quotas without an end, and imports no heavy library."""
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


def test_the_dags_of_this_repository() -> None:
    """The DAG file of this repository creates the DAGs of its desired state."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=Path(__file__).parents[2] / "dags")
    assert bag.import_errors == {}
    assert set(bag.dags) == {"reconcile_demo", "drift"}
