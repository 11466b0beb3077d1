"""Runs at commits, and the way back from them: shared by the tests of rollback."""

from typing import Any

from quota_ops.model.errors import GuardsRefused
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.runs.rollback import start_rollback
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.lab import Lab
from tests.writing import State


def run_at(lab: Lab, commit: str, command: str = "reconcile", **options: Any) -> RunFolder:
    """Run a command's stages at a commit, with every guard overridden."""
    folder = RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=commit)
    run_stages(lab.resume(folder, **options), CHAINS[command])
    return folder


def reconcile(lab: Lab, state: State, commit: str, **policy: Any) -> RunFolder:
    """Bring the cluster to the state in Git at a commit."""
    lab.desire(state, **policy)
    return run_at(lab, commit)


def plan_back(lab: Lab, run: RunFolder, **options: Any) -> RunFolder:
    """Return the run that plans the way back of another."""
    folder = start_rollback(lab.store, run, by="anna", reason="INC-31")
    try:
        run_stages(lab.resume(folder, **options), CHAINS["rollback"])
    except GuardsRefused:
        assert not options.get("allow", True)
    return folder


def write(lab: Lab, planned: RunFolder, **options: Any) -> RunFolder:
    """Apply a plan, read it back and report it."""
    run_stages(lab.resume(planned, **options), RESUMED)
    return planned


def guards(run: RunFolder) -> dict[str, str]:
    """Return the findings of the guards for a run's plan."""
    return {one["guard"]: one["message"] for one in run.read_json(PLAN)["guards"]}


def kinds(run: RunFolder) -> dict[str, str]:
    """Return the kind of each difference, by entity."""
    return {row.entity: row.kind.value for row in run.differences()}
