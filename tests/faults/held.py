"""A pytest plugin that keeps which faults held, so that a run can resume and end with one line.

FAULTS_HELD is the file, with a line for each test. Tests that held there are left out.
"""

import os
from pathlib import Path

import pytest


def read_held(file: Path) -> dict[str, bool]:
    """Return whether each fault in a file held; the last line of a fault decides."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {name: ended == "held" for ended, _, name in (line.partition(" ") for line in lines)}


def kept_file() -> Path:
    """Return the file of this run."""
    return Path(os.environ["FAULTS_HELD"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what an earlier part of this run has played."""
    held = read_held(kept_file())
    done = [item for item in items if held.get(item.nodeid)]
    if done:
        items[:] = [item for item in items if item not in done]
        config.hook.pytest_deselected(items=done)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how a test ended; an error after it makes it fail."""
    if report.failed or (report.when == "call" and report.passed):
        with kept_file().open("a", encoding="utf-8") as file:
            file.write(f"{'held' if report.passed else 'failed'} {report.nodeid}\n")
