"""Notifications of whole DAG runs, by a notifier that writes to a file."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import Any

import pytest
from structlog import get_logger

from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.report.records.json_report import COUNTED
from quota_ops.store.places.run_store import safe_name
from tests.dag.answering import approve
from tests.dag.asset_events import list_events
from tests.dag.repository import DAGS, DagRun, Quotas, Repository

pytestmark = pytest.mark.usefixtures("embedded")
RECONCILE = "reconcile_demo"
AT = datetime(2026, 11, 12, tzinfo=UTC)
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def lines(repository: Repository, run: DagRun) -> list[str]:
    """Return the notifications, with RUN for the path of the run."""
    text = repository.told.read_text() if repository.told.exists() else ""
    for path in (run.store / "runs" / "demo").iterdir():
        text = text.replace(str(path), "RUN")
    return text.splitlines()


def list_buttons(task_id: str) -> dict[str, str | None]:
    """Return the buttons on the page of a task of the newest run, and where they lead."""
    from airflow.api_fastapi.core_api.routes.public.extra_links import get_extra_links
    from airflow.models.dagbag import DBDagBag
    from airflow.models.dagrun import DagRun as Run
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        runs = select(Run).where(Run.dag_id == RECONCILE).order_by(Run.id.desc())
        run_id = session.scalars(runs.limit(1)).one().run_id
        links = get_extra_links(RECONCILE, run_id, task_id, session, DBDagBag())
        return dict(links.extra_links)


def test_a_run_that_failed(demo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run without a valid file ends at check, with file and line, without a retry.

    It sends `failed`, not `refused`. An Airflow that knows its address shows the report.
    """
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    (demo.root / "desired_state" / "demo" / "payments.yaml").write_text("owner: payments\n")
    run = demo.run(RECONCILE)
    assert (run.state, run.tasks["check"], run.tries["check"]) == ("failed", "failed", 1)
    assert "payments.yaml:1" in str(run.folder().stage_result("check").message)
    (failed,) = lines(demo, run)
    name = run.folder().place.name
    page = f"https://airflow.example/quota-ops/runs/demo/{name}/report.html"
    assert failed == f"failed demo: check failed, so the state of demo is unknown. {page}"
    assert list_buttons("report") == {"Report": page}


def test_a_run_that_failed_though_its_cluster_is_as_agreed(
    demo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure never looks like success: the failed task comes before the state of the cluster."""

    def refuse(_page: Path) -> None:
        raise QuotaOpsError("the run did not succeed: verify failed", "This task did.")

    monkeypatch.setattr("quota_ops.airflow.tasks.refuse_unless_done", refuse)
    run = demo.run(RECONCILE)
    assert lines(demo, run) == [
        (
            "failed demo: the run did not succeed: verify failed, although demo matches the files, "
            "whose commit is unknown; 1 change made by this run; 1 of 1 quota in sync; 1 of 1 "
            "broker agrees. RUN/report.html"
        )
    ]


def test_a_run_store_that_cannot_be_used(demo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both DAGs fail and send `failed`, although they cannot write a report."""
    place = demo.root / "desired_state" / "demo" / "cluster.yaml" / "store"
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(place))
    assert demo.run(RECONCILE).state == demo.run("drift").state == "failed"
    failed, missed = demo.told.read_text().splitlines()
    assert failed == f"failed demo: the run store {place} cannot be written: File exists "
    assert missed.startswith(f"failed drift: {place}/fleet/drift__")


def test_a_task_whose_host_died(demo: Repository) -> None:
    """Airflow's DAG processor sends the notification, and knows no error."""
    task: Any = demo.dags()["drift"].get_task("overview")
    context = {"dag": task.dag, "run_id": "scheduled", "ti": None}
    task.on_failure_callback[0](context)
    assert demo.told.read_text() == (
        "failed drift: the process of the task was killed, or its host died \n"
    )


def test_a_run_that_airflow_ends(repository: Repository) -> None:
    """The scheduler skips the task report, so the DAG processor sends `failed`, for each DAG once.

    For a run that fails by itself, a task sends it: the DAG processor sends nothing.
    """
    from airflow.dag_processing.dagbag import DagBag
    from airflow.dag_processing.processor import _execute_dag_callbacks
    from airflow.jobs.job import Job
    from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
    from airflow.models.dagrun import DagRun as Run
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState, TaskInstanceState
    from sqlalchemy import select

    repository.cluster("demo", cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    job: Any = Job
    scheduler: Any = SchedulerJobRunner(job())
    for dag_id in (RECONCILE, "drift"):
        repository.run(dag_id, marked=".*")
        with create_session() as session:
            newest = select(Run).where(Run.dag_id == dag_id).order_by(Run.id.desc()).limit(1)
            run = session.scalars(newest).one()
            run.state, run.start_date = DagRunState.RUNNING, AT
            for task in run.get_task_instances(session=session):
                task.state = TaskInstanceState.RUNNING
            session.flush()
            request = scheduler._schedule_dag_run(run, session)  # noqa: SLF001 - it has no other name
            states = {str(task.state) for task in run.get_task_instances(session=session)}
            assert (str(run.state), states) == ("failed", {"skipped"})
        for reason in ("task_failure", request.msg):
            told = request.model_copy(update={"msg": reason})
            _execute_dag_callbacks(DagBag(dag_folder=DAGS), told, get_logger())
    assert repository.told.read_text() == "".join(
        f"failed {subject}: Airflow ended the run, which took longer than {longest}, and skipped "
        "the tasks that had not ended \n"
        for subject, longest in (("demo", "3:00:00"), ("drift", "2:00:00"))
    )


@contextmanager
def receive_statsd(patch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Turn on Airflow's metrics by StatsD; at the end, the set has each gauge that was sent."""
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

    received: set[str] = set()
    with socket(AF_INET, SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.setblocking(False)
        for name, value in {
            "ON": True,
            "HOST": "127.0.0.1",
            "PORT": server.getsockname()[1],
        }.items():
            patch.setenv(f"AIRFLOW__METRICS__STATSD_{name}", str(value))
        logger = get_stats_factory()()
        stats.initialize(factory=lambda: logger, export_legacy_names=False)
        yield received
        stats.initialize(factory=NoStatsLogger, export_legacy_names=False)
        logger.statsd.close()
        with suppress(BlockingIOError):
            while True:
                received.add(server.recv(1500).decode())


def read_results(dag_id: str) -> dict[str, Any]:
    """Return what each task of the run of the time AT returned."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        run_id = f"manual__{AT.isoformat()}"
        found = XComModel.get_many(key="return_value", dag_ids=dag_id, run_id=run_id)
        rows: Any = session.scalars(found)
        return {row.task_id: row.value for row in rows}


def test_drift(
    demo: Repository,
    quotas: Quotas,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The drift DAG reports a change outside Git, even if another cluster can have no report.

    The run before it, which succeeds without drift, sends no notification. A DAG that follows the
    asset of the cluster starts once for each run that changed quotas or found drift, and gets the
    counts. Only the overview fails because of the other cluster. The logs have the reports as text,
    and Airflow's metrics the counts.
    """
    first = demo.run(RECONCILE, at=AT)
    assert (first.state, lines(demo, first)) == ("success", [])
    results = read_results(RECONCILE)
    assert results["describe"] == "demo stores 0 quotas."
    assert results["validate"].startswith("The broker accepts the change (")
    assert results["apply"] == "1 of 1 change written."
    assert results["verify"].startswith("demo matches the files, ")
    quotas.set({"user=alice producer_byte_rate": 7})
    demo.cluster("other", cluster_id="BBBBBBBBBBBBBBBBBBBBBB", payments="owner: payments\n")
    in_the_way = demo.store / f"runs/other/drift__manual__{AT.isoformat()}/report.html"
    in_the_way.mkdir(parents=True)

    caplog.set_level("INFO", "quota_ops.airflow")
    with receive_statsd(monkeypatch) as gauges:
        run = demo.run("drift", at=AT)

    assert [one for one, state in run.tasks.items() if state == "success"] == ["diff", "report"]
    drift, missed = lines(demo, run)
    assert drift.startswith("drift demo: 1 quota on demo was changed outside Git")
    assert missed.startswith("failed drift: 1 of 2 clusters could not be compared: other ")
    name = f"drift__manual__{AT.isoformat()}"
    assert missed.endswith(f"/fleet/{safe_name(name)}/report.html")
    assert read_results("drift") == {
        "diff": "1 quota on demo was changed outside Git; 0 of 1 quota in sync.",
        "report": "Changes outside Git on 1 of 2 clusters: demo.",
    }
    assert "demo: 1 quota on demo was changed outside Git" in caplog.text
    assert "2 clusters: 1 is unknown, 1 needs attention." in caplog.messages
    values = {"compared": 1, "declared": 1, **dict.fromkeys(COUNTED, 0), "drifted": 1}
    assert {f"airflow.quota_ops.{name}.demo:{value}|g" for name, value in values.items()} < gauges
    assert {gauge for gauge in gauges if ".other:" in gauge} == {
        "airflow.quota_ops.compared.other:0|g"
    }
    counts = [(name, one["changed"], one["drifted"]) for name, one in list_events(demo)]
    assert counts == [("quota_ops_demo_applied", 1, 0), ("quota_ops_demo_drifted", 0, 1)]


def test_a_notifier_that_fails(
    demo: Repository, quotas: Quotas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a notifier fails, the run continues, and its log has the error."""

    def unreachable(_notifier: Any, _context: Any) -> None:
        raise ConnectionError("chat is down")

    monkeypatch.setattr("tests.dag.told.FileNotifier.notify", unreachable)
    quotas.set({"user=alice producer_byte_rate": 900})
    assert demo.run(RECONCILE, approve()).state == "success"


def test_late(tmp_path: Path) -> None:
    """Every DAG has the deadline `late`."""
    from airflow.sdk.definitions.callback import SyncCallback
    from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

    from quota_ops.airflow import build_dags

    repository = Repository(tmp_path)
    repository.cluster("demo", cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    repository.add_policy("demo", "usage: {prometheus: monitoring, match: {cluster: demo}}")
    late = DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(hours=6),
        callback=SyncCallback("tests.dag.told.FileNotifier", {"path": "late.txt"}),
    )
    dags = build_dags(tmp_path / "desired_state", notify={"late": late})
    assert {dag_id: dag.deadline for dag_id, dag in dags.items()} == {
        RECONCILE: [late],
        "drift": [late],
        "record_use": [late],
    }


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    """The DAG file of the documentation creates the DAGs, with deadline and notifiers."""
    from airflow.dag_processing.dagbag import DagBag

    Repository(tmp_path).cluster("demo", cluster_id="AAAAAAAAAAAAAAAAAAAAAA")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "quotas.py").write_text(
        (EXAMPLES / "dags_with_notifications.py").read_text()
    )
    bag = DagBag(dag_folder=tmp_path / "dags")
    assert bag.import_errors == {}
    assert set(bag.dags) == {RECONCILE, "drift"}
    assert all(dag.deadline for dag in bag.dags.values())
    task: Any = bag.dags[RECONCILE].get_task("approve")
    assert task.notify["waiting"].to == "kafka-on-call@example.com"


def test_what_does_not_happen(tmp_path: Path) -> None:
    """A misspelled event is an error of the DAG file."""
    from quota_ops.airflow import build_dags

    notify: Any = {"faild": []}
    with pytest.raises(InvalidInput, match="notify has unknown events: faild"):
        build_dags(tmp_path, notify=notify)
