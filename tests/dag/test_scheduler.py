"""The real scheduler: DAGs from a Git bundle, quota-ops from its wheel, each task on a new host."""

import compileall
import json
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from quota_ops.lab.airflow.server import AirflowApi, RunningAirflow, start_airflow
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from quota_ops.model.runs.outcome import Status
from quota_ops.sql.spark_s3 import fetch_connector
from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import RunStore, find_run_store
from quota_ops.store.run.files import APPLIED
from quota_ops.store.run.folder import RunFolder
from tests.airflow_runs import git_bundle, list_waiting_runs, wait_for_run, wait_for_runs
from tests.dag.host_folders import HOSTS, INSTALLED, KILLED
from tests.dag.repository import ALICE, Quotas
from tests.looking import seen_in_time
from tests.objects.server import S3Server

ROOT = Path(__file__).parents[2]
DAG_FILE = """\
from datetime import timedelta
from pathlib import Path
from quota_ops.airflow import build_dags
dags = build_dags(Path(__file__).parents[1] / "desired_state", engine="embedded")
for dag in dags.values():
    for task in dag.tasks:
        task.retry_delay = timedelta(0)
globals().update(dags)
"""
RECONCILE, FOLLOW = "reconcile_demo", "announce_changes"
# An Airflow of its own, and one run with Spark; the demo in make test has both too.
pytestmark = [pytest.mark.timeout(600), pytest.mark.matrix]


@dataclass(frozen=True)
class Company:
    """A company with a Git repository of quotas, an Airflow, and a host for each of its tasks."""

    repository: Path
    hosts: Path
    store: RunStore
    airflow: RunningAirflow

    def git(self, *arguments: str) -> str:
        """Run Git in the repository."""
        return git(self.repository, *arguments)

    def newest_run(self) -> RunFolder:
        """Return the run of the DAG that began last; the drift DAG runs every hour too."""
        runs = (
            run
            for run in map(RunFolder, self.store.runs("demo"))
            if run.about().dag_id == RECONCILE
        )
        return max(runs, key=lambda run: run.about().sequence or 0)


def git(repository: Path, *arguments: str) -> str:
    """Run Git in a repository and return its output."""
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    command = ["git", "-C", str(repository), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def install(folder: Path) -> Path:
    """Build the wheel and unpack it, as an installation of a pure wheel does."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "installed")
    compileall.compile_dir(folder / "installed", quiet=1)
    return folder / "installed"


def write_repository(folder: Path, cluster_id: str) -> Path:
    """Write and commit a repository of one cluster, and the DAG that follows it."""
    cluster = folder / "desired_state" / "demo"
    cluster.mkdir(parents=True)
    (cluster / "cluster.yaml").write_text(
        f"cluster_id: {cluster_id}\nconnection: demo\ndrift: ask\nguards: {{small_byte_rate: 0}}\n"
    )
    (cluster / "payments.yaml").write_text(ALICE)
    (folder / "dags").mkdir()
    (folder / "dags" / "quotas.py").write_text(DAG_FILE)
    shutil.copy(ROOT / "docs" / "examples" / "follow_quotas.py", folder / "dags")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Ask for a quota")
    return folder


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """Yield a folder that the users of all hosts can read; those of pytest are private."""
    with TemporaryDirectory(prefix="quota-ops-company-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def company(
    broker: RunningBroker, s3: S3Server, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Company]:
    """Yield one Airflow for this module, whose run store is in a bucket."""
    fetch_connector()
    repository = write_repository(shared / "repository", broker.config.cluster_id)
    hosts = shared / "hosts"
    hosts.mkdir()
    home = tmp_path_factory.mktemp("airflow")
    (shared / "gitconfig").write_text(f"[safe]\n\tdirectory = {repository}/.git\n")
    host, port = broker.bootstrap().split(":")
    connection = json.dumps({"conn_type": "kafka", "host": host, "port": int(port)})
    address = f"s3://runs/{uuid4().hex}"
    environment = {
        **s3.environment(),
        "AIRFLOW__CORE__EXECUTOR": "tests.dag.hosts.HostExecutor",
        "AIRFLOW_CONN_QUOTA_OPS_DEMO": connection,
        "GIT_CONFIG_GLOBAL": str(shared / "gitconfig"),
        HOSTS: str(hosts),
        INSTALLED: str(install(shared / "wheel")),
        "QUOTA_OPS_RUN_STORE": address,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3.environment().items():
            patch.setenv(name, value)
        open_client.cache_clear()
        with start_airflow(home, git_bundle(repository), environment=environment) as airflow:
            airflow.api.wait_for_dag("drift")
            airflow.api.wait_for_dag(RECONCILE)
            airflow.api.wait_for_dag(FOLLOW)
            yield Company(repository, hosts, find_run_store(address), airflow)
        assert not airflow.running
    open_client.cache_clear()


@pytest.fixture
def api(company: Company) -> AirflowApi:
    """Its REST API."""
    return company.airflow.api


def answered(api: AirflowApi, run_id: str, option: str) -> str:
    """Decide about a waiting plan, again if Airflow lost the decision; return the end state."""
    while (state := api.read_state(RECONCILE, run_id)) not in {"success", "failed"}:
        if run_id in list_waiting_runs(api, RECONCILE):
            time.sleep(1)
            api.decide(RECONCILE, run_id, option, "agreed in PLAT-12")
        time.sleep(0.5)
    return state


def test_a_host_that_dies_in_the_middle_of_apply(
    company: Company, api: AirflowApi, quotas: Quotas
) -> None:
    """Another host finishes apply: every row is written, accepted once and verified.

    Then a DAG that follows the cluster starts, once, and knows what was changed.
    """
    (company.hosts / KILLED).touch()

    run_id = api.trigger(RECONCILE)

    assert wait_for_run(api, RECONCILE, run_id) == "success"
    tries = {one["task_id"]: one["try_number"] for one in api.list_tasks(RECONCILE, run_id)}
    assert {task for task, number in tries.items() if number > 1} == {"apply"}
    run = company.newest_run()
    assert [outcome.status for outcome in run.outcomes(APPLIED)] == [Status.ACCEPTED]
    assert run.read_json("verification.json")["verified"] == 1
    assert quotas.stored() == {"user=alice producer_byte_rate": 1000.0}
    (follower,) = wait_for_runs(api, FOLLOW)
    assert wait_for_run(api, FOLLOW, follower) == "success"
    announced = f"1 quota changed on demo by {run.place.name}"

    def is_announced() -> bool:
        return announced in api.read_log(FOLLOW, follower, "announce")

    # The log of a host is collected when its process has ended, a moment after its task.
    assert seen_in_time(is_announced, expected=True)


def test_what_goes_on_while_a_plan_waits(company: Company, api: AirflowApi, quotas: Quotas) -> None:
    """While a plan waits, drift is reported, and the cluster's next run waits for the decision.

    The next run then needs its own approval. It writes what Git declares at the bundle's commit.
    """
    quotas.set({"user=alice producer_byte_rate": 900})
    waiting = api.trigger(RECONCILE)
    while list_waiting_runs(api, RECONCILE) != [waiting]:
        assert api.read_state(RECONCILE, waiting) in {"queued", "running"}
        time.sleep(0.5)
    following = api.trigger(RECONCILE)
    assert wait_for_run(api, "drift", api.trigger("drift")) == "success"
    assert [api.read_state(RECONCILE, one) for one in (waiting, following)] == ["running", "queued"]

    assert answered(api, waiting, "Reject") == "failed"
    assert quotas.stored() == {"user=alice producer_byte_rate": 900.0}
    assert answered(api, following, "Approve") == "success"
    assert quotas.stored() == {"user=alice producer_byte_rate": 1000.0}
    assert company.newest_run().about().commit == company.git("rev-parse", "HEAD")
    described = api.read_log(RECONCILE, following, "describe")
    assert f"connection demo: cluster {quotas.cluster_id}, broker 1 at " in described
    assert re.search(r"stage describe, [\d,]+ ms", described)


def test_a_param_that_is_no_guard(api: AirflowApi) -> None:
    """Airflow rejects an unknown guard in `allow` before a run begins."""
    with pytest.raises(InvalidInput, match="everything"):
        api.trigger(RECONCILE, allow=["everything"])


RAISED = """\
owner: payments
quotas:
  - user: alice
    limits: {{producer_byte_rate: 1000}}
    overrides: [{{until: {until}, limits: {{producer_byte_rate: 5000}}, reason: a sale}}]
"""


def test_the_run_after_the_end_of_a_raise_starts_by_itself(
    company: Company, api: AirflowApi, quotas: Quotas
) -> None:
    """The DAG has no schedule: the scheduler starts a run when the raise ends, and it is undone."""
    quotas.set({"user=alice producer_byte_rate": 1000})
    until = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=2)
    file = company.repository / "desired_state" / "demo" / "payments.yaml"
    file.write_text(RAISED.format(until=until.isoformat()))
    company.git("commit", "-qam", "Raise the limit for a sale")
    commit = company.git("rev-parse", "HEAD")
    raised = "pending"
    while raised != "success" or company.newest_run().about().commit != commit:
        assert datetime.now(UTC) < until, raised
        raised = wait_for_run(api, RECONCILE, api.trigger(RECONCILE))
    assert quotas.stored() == {"user=alice producer_byte_rate": 5000.0}

    def is_undone() -> bool:
        return quotas.stored() == {"user=alice producer_byte_rate": 1000.0}

    assert seen_in_time(is_undone, expected=True, seconds=240.0)
    assert datetime.now(UTC) >= until
    (started,) = (run for run in wait_for_runs(api, RECONCILE) if run.startswith("scheduled__"))
    assert wait_for_run(api, RECONCILE, started) == "success"
