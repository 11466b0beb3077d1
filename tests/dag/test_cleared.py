"""A DAG run that ended long ago, and that somebody clears by hand."""

import subprocess
from datetime import UTC, datetime

import pytest

from quota_ops import ledger
from quota_ops.run_folder import RunFolder
from quota_ops.run_store import RunStore
from quota_ops.sandbox.broker import RunningBroker
from tests.dag.repository import Repository

OLD = datetime(2026, 11, 14, tzinfo=UTC)
RUN = "reconcile_demo__manual__2026-11-14T00:00:00+00:00"


def git(repository: Repository, command: str) -> str:
    """Run Git where the desired state is; what it said."""
    call = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *command.split()]
    folder = repository.root / "desired_state"
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("embedded")
def test_an_old_run_that_finds_a_newer_commit(demo: Repository, broker: RunningBroker) -> None:
    """It is a run of the commit whose YAML it reads, whatever it was when it ran before."""
    store = RunStore(demo.store)
    RunFolder.start(store.new_run("demo", RUN), cluster="demo", commit="old")
    git(demo, "init -q")
    git(demo, "add .")
    git(demo, "commit -q -m newer")
    newer = git(demo, "rev-parse HEAD").strip()

    run = demo.run("reconcile_demo", at=OLD)

    assert run.state == "success"
    assert run.folder().about()["commit"] == newer
    assert ledger.read(store.ledger(broker.config.cluster_id)).commits == (newer,)
