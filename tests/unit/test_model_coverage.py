"""The model decides what is written to a cluster, so its tests run every branch of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TESTS = sorted(
    path
    for pattern in (
        "model_*",
        "limits",
        "one_off",
        "resolution",
        "run_list",
        "snapshots",
        "specification",
    )
    for path in HERE.glob(f"test_{pattern}.py")
    if path != Path(__file__)
)


OPTIONS = ("-qx", "-n0", "-p", "no:cacheprovider", "--hypothesis-profile=few")


@pytest.mark.matrix
def test_every_branch_of_the_model_is_run(tmp_path: Path) -> None:
    """The tests of the model, findings and precedence alone reach each line and branch of them.

    A few examples of each property suffice, so no branch is reached by luck.
    """
    run = [
        "run",
        "--source=quota_ops/model,quota_ops/findings,quota_ops/precedence",
        "-m",
        "pytest",
        *OPTIONS,
        *TESTS,
    ]
    report = ["report", "--fail-under=100", "--skip-covered", "--show-missing"]
    for arguments in (run, report):
        ended = subprocess.run(
            [sys.executable, "-m", "coverage", *arguments],
            cwd=ROOT,
            env=os.environ | {"COVERAGE_FILE": str(tmp_path / "coverage")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout
