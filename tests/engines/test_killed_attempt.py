"""An attempt that is killed while it becomes the result of a run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quota_ops.sql.attempt import DiffAttempt
from quota_ops.sql.job import ComparedRun
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import find_pruned
from tests.engines.publishing import CLUSTER, STEPS, list_results, read_entities
from tests.engines.submitting import ROOT

AFTER = (["old", "old"], ["old", "old"], ["old", None], ["new", None])
"""The results after a kill before each step: overrides and differences."""


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.matrix)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """The folder of a run with an old result, in either kind of store."""
    address = request.getfixturevalue("address") if request.param == "bucket" else tmp_path
    folder = open_place(address) / "run"
    publish(folder, "old")
    return folder


def publish(folder: Place, entity: str) -> None:
    """Make an attempt for a run its result."""
    with DiffAttempt.begin([ComparedRun(CLUSTER, folder)]) as attempt:
        attempt.publish(0, list_results(entity))


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_kill_before_each_step(step: int, folder: Place) -> None:
    """No reader ever finds the differences of one attempt with the overrides of another.

    The old result stays until the manifest exists; differences are missing until the result is
    whole, so that nothing can be planned. The next attempt is a whole result.
    """
    killed = subprocess.run(
        [sys.executable, "-m", "tests.engines.publishing", folder.uri, str(step)],
        cwd=ROOT,
        check=False,
    )

    assert killed.returncode == -signal.SIGKILL
    assert read_entities(folder) == AFTER[step]
    assert folder.list().count("diff-0002.json") == (step > 0)
    left = [leaf.path for leaf in folder.walk() if not leaf.is_folder]
    assert [path for path in left if not find_pruned(path)] == []
    assert any(path.startswith("spark-") for path in left)
    publish(folder, "next")
    assert read_entities(folder) == ["next", "next"]
