"""The real scheduler: DAGs from a Git bundle, quota-ops from its wheel, a run through the API."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.run_folder import RunFolder
from quota_ops.sandbox.airflow import RunningAirflow, git_bundle, start_airflow
from quota_ops.sandbox.airflow_api import AirflowApi
from quota_ops.sandbox.broker import RunningBroker
from tests.dag.repository import ALICE, Quotas

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Company:
    """A company that has the wheel, a Git repository with quotas and a DAG file, and an Airflow."""

    repository: Path
    installed: Path
    store: Path
    airflow: RunningAirflow

    def git(self, *arguments: str) -> str:
        """Run Git in the repository."""
        return git(self.repository, *arguments)


def git(repository: Path, *arguments: str) -> str:
    """Run Git in a repository; what it said."""
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    command = ["git", "-C", str(repository), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def install(folder: Path) -> Path:
    """Build the wheel and unpack it, which is what installing a pure wheel does."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "installed")
    return folder / "installed"


def write_repository(folder: Path, cluster_id: str) -> Path:
    """A repository of one cluster, committed."""
    cluster = folder / "desired_state" / "demo"
    cluster.mkdir(parents=True)
    (cluster / "cluster.yaml").write_text(f"cluster_id: {cluster_id}\nconnection: demo\n")
    (cluster / "payments.yaml").write_text(ALICE)
    (folder / "dags").mkdir()
    (folder / "dags" / "quotas.py").write_text((ROOT / "dags" / "quota_ops_dags.py").read_text())
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Ask for a quota")
    return folder


@pytest.fixture(scope="module")
def company(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """One Airflow for this module."""
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
        airflow.api.wait_for_dag("reconcile_demo")
        yield Company(repository, installed, folder / "store", airflow)
    assert not airflow.running


@pytest.fixture
def api(company: Company) -> AirflowApi:
    """Its REST API."""
    return company.airflow.api


def test_reconcile_through_the_api(company: Company, api: AirflowApi, quotas: Quotas) -> None:
    """A triggered run ends in success with the broker as Git says, at the commit of the bundle."""
    run_id = api.trigger("reconcile_demo")
    assert api.wait("reconcile_demo", run_id) == "success"
    assert quotas.held() == {"user=alice producer_byte_rate": 1000.0}
    (run,) = (company.store / "runs" / "demo").iterdir()
    assert RunFolder(run).about()["commit"] == company.git("rev-parse", "HEAD")
    submitted = api.task_log("reconcile_demo", run_id, "diff")
    assert str(company.installed / "spark_jobs" / "diff_quotas.py") in submitted


def test_a_param_that_is_no_guard(api: AirflowApi) -> None:
    """Airflow itself refuses it, before a run begins."""
    with pytest.raises(InvalidInput, match="everything"):
        api.trigger("reconcile_demo", allow=["everything"])
