"""The model decides what is written to a cluster, so its tests run every branch of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = sorted(
    path
    for pattern in (
        "unit/test_model_*",
        "unit/test_limits",
        "unit/test_one_off",
        "unit/test_overriding_words",
        "unit/test_report_*",
        "unit/test_resolution",
        "unit/test_review_comment",
        "unit/test_run_list",
        "unit/test_snapshots",
        "unit/test_specification",
        "engines/test_overrides",
    )
    for path in (ROOT / "tests").glob(f"{pattern}.py")
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
