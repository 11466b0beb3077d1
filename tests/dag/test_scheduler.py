"""The real scheduler: DAGs from a Git bundle, quota-ops from its wheel, a run through the API."""

import json
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quota_ops.lab.airflow.api import AirflowApi
from quota_ops.lab.airflow.server import RunningAirflow, git_bundle, start_airflow
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_store import open_place
from tests.dag.repository import ALICE, Quotas

ROOT = Path(__file__).parents[2]
RECONCILE = "reconcile_demo"
pytestmark = pytest.mark.timeout(600)  # an Airflow of its own, and three runs with Spark


@dataclass(frozen=True)
class Company:
    """A company with the wheel, a Git repository with quotas and a DAG file, and an Airflow."""

    repository: Path
    installed: Path
    store: Path
    airflow: RunningAirflow

    def git(self, *arguments: str) -> str:
        """Run Git in the repository."""
        return git(self.repository, *arguments)


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
    return folder / "installed"


def write_repository(folder: Path, cluster_id: str) -> Path:
    """Write and commit a repository of one cluster."""
    cluster = folder / "desired_state" / "demo"
    cluster.mkdir(parents=True)
    (cluster / "cluster.yaml").write_text(
        f"cluster_id: {cluster_id}\nconnection: demo\ndrift: ask\nguards: {{small_byte_rate: 0}}\n"
    )
    (cluster / "payments.yaml").write_text(ALICE)
    (folder / "dags").mkdir()
    (folder / "dags" / "quotas.py").write_text((ROOT / "dags" / "quota_ops_dags.py").read_text())
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Ask for a quota")
    return folder


@pytest.fixture(scope="module")
def company(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Yield one Airflow for this module."""
    folder = tmp_path_factory.mktemp("company")
    repository = write_repository(folder / "repository", broker.config.cluster_id)
    installed = install(folder / "wheel")
    host, port = broker.bootstrap().split(":")
    environment = {
        "PYTHONPATH": str(installed),
        "QUOTA_OPS_RUN_STORE": str(folder / "store"),
        "AIRFLOW_CONN_QUOTA_OPS_DEMO": json.dumps(
            {"conn_type": "kafka", "host": host, "port": int(port)}
        ),
    }
    bundle = git_bundle(repository)
    with start_airflow(folder / "airflow", bundle, environment=environment) as airflow:
        airflow.api.wait_for_dag("drift")
        airflow.api.wait_for_dag(RECONCILE)
        yield Company(repository, installed, folder / "store", airflow)
    assert not airflow.running


@pytest.fixture
def api(company: Company) -> AirflowApi:
    """Its REST API."""
    return company.airflow.api


def answered(api: AirflowApi, run_id: str, option: str) -> str:
    """Decide about a waiting plan, again if Airflow lost the decision; return the end state."""
    while (state := api.read_state(RECONCILE, run_id)) not in {"success", "failed"}:
        if run_id in api.list_waiting_runs(RECONCILE):
            time.sleep(1)
            api.decide(RECONCILE, run_id, option, "agreed in PLAT-12")
        time.sleep(0.2)
    return state


def test_what_goes_on_while_a_plan_waits(company: Company, api: AirflowApi, quotas: Quotas) -> None:
    """While a plan waits, drift is reported, and the cluster's next run waits for the decision.

    The next run then needs its own approval. It writes what Git declares at the bundle's commit,
    with the Spark job of the wheel.
    """
    quotas.set({"user=alice producer_byte_rate": 900})
    waiting = api.trigger(RECONCILE)
    while api.list_waiting_runs(RECONCILE) != [waiting]:
        assert api.read_state(RECONCILE, waiting) in {"queued", "running"}
        time.sleep(0.2)
    following = api.trigger(RECONCILE)
    assert api.wait_for_run("drift", api.trigger("drift")) == "success"
    assert [api.read_state(RECONCILE, one) for one in (waiting, following)] == ["running", "queued"]

    assert answered(api, waiting, "Reject") == "failed"
    assert quotas.stored() == {"user=alice producer_byte_rate": 900.0}
    assert answered(api, following, "Approve") == "success"
    assert quotas.stored() == {"user=alice producer_byte_rate": 1000.0}
    last = max((company.store / "runs" / "demo").iterdir())
    assert RunFolder(open_place(last)).about()["commit"] == company.git("rev-parse", "HEAD")
    submitted = api.read_log(RECONCILE, following, "diff")
    assert str(company.installed / "spark_jobs" / "diff_quotas.py") in submitted
    described = api.read_log(RECONCILE, following, "describe")
    assert f"connection demo: cluster {quotas.cluster_id}, broker 1 at " in described
    assert re.search(r"stage describe, [\d,]+ ms", described)


def test_a_param_that_is_no_guard(api: AirflowApi) -> None:
    """Airflow rejects an unknown guard in `allow` before a run begins."""
    with pytest.raises(InvalidInput, match="everything"):
        api.trigger(RECONCILE, allow=["everything"])
