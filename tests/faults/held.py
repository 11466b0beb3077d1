"""A pytest plugin that keeps how each fault ended, so that a run can resume and end with one line.

FAULTS_HELD is the file, with a line when a test is chosen, when it begins and when it ends. Tests
that held there are left out and, with FAULTS_ONLY_CHOSEN, all that began.
"""

import os
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest


class End(StrEnum):
    """How a fault ended; the first two are before that."""

    CHOSEN = "not played"
    BEGAN = "ended the process"
    HELD = "held"
    FAILED = "failed"
    TIMED_OUT = "timed out"


def read_ends(file: Path) -> dict[str, End]:
    """Return how each chosen fault in a file ended; the last line of a fault decides."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {name: End(end) for end, _, name in (line.partition("\t") for line in lines)}


def summarize(ends: Mapping[str, End]) -> str:
    """Return how many faults were chosen, played and held, and the names of all others."""
    count = Counter(ends.values())
    lost: dict[End, list[str]] = {}
    for name, end in ends.items():
        if end is not End.HELD:
            lost.setdefault(end, []).append(name)
    others = "".join(f"; {end}: {', '.join(names)}" for end, names in sorted(lost.items()))
    played = len(ends) - count[End.CHOSEN]
    return f"{len(ends)} to be played, {played} played, {count[End.HELD]} held{others}\n"


def kept_file() -> Path:
    """Return the file of this run."""
    return Path(os.environ["FAULTS_HELD"])


def _keep(end: End, name: str) -> None:
    with kept_file().open("a", encoding="utf-8") as file:
        file.write(f"{end}\t{name}\n")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what held in this run before or, after a process that was ended, what began."""
    done = {*End} - {End.CHOSEN} if "FAULTS_ONLY_CHOSEN" in os.environ else {End.HELD}
    ends = read_ends(kept_file())
    left_out = [item for item in items if ends.get(item.nodeid) in done]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep which tests are to be played."""
    for item in session.items:
        _keep(End.CHOSEN, item.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Keep that a test begins."""
    _keep(End.BEGAN, nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how a test ended; an error after it makes it fail."""
    if report.failed:
        is_late = "from pytest-timeout" in report.longreprtext
        _keep(End.TIMED_OUT if is_late else End.FAILED, report.nodeid)
    elif report.when == "call" and report.passed:
        _keep(End.HELD, report.nodeid)
