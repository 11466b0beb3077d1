"""Folders that the user may not read: an error with the place, and never an empty list."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.preloaded import preloaded
from tests.unit.test_offline import ALICE, CLUSTER_ID

RUNS = ("runs",)
PLAN = ("plan", "demo", "--actual", "actual.jsonl")
SHOW = ("show", "last")
PING = ("ping", "demo")


@pytest.fixture(name="home", scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a home with a desired state, a run store that has a run, a hold and a connection."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {CLUSTER_ID}\nconnection: nowhere\n")
    (home / "actual.jsonl").write_text(ALICE)
    connections = home / ".config" / "quota-ops" / "connections"
    connections.mkdir(parents=True)
    (connections / "nowhere.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    for command in (PLAN, ("hold", "demo", "--names", "user=a", "--until", "1h", "--reason", "r")):
        ended = run(home, command)
        assert ended.returncode == 0, ended.stderr
    return home


def run(home: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in a home."""
    return subprocess.run(
        [preloaded(), *command],
        cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("store", RUNS),
        ("store", SHOW),
        ("store", PLAN),
        ("store/runs", RUNS),
        ("store/runs/demo", RUNS),
        ("store/runs/demo", SHOW),
        ("store/holds", PLAN),
        ("store/ledger", PLAN),
        ("store/ledger_ends", PLAN),
        ("connections", PING),
    ],
)
def test_a_folder_that_may_not_be_read(place: str, command: Sequence[str], home: Path) -> None:
    """The command ends with 2 and names the place; it does not take unreadable for empty."""
    below = ".config/quota-ops" if place == "connections" else ".local/state/quota-ops"
    closed = home / below / place
    closed.mkdir(exist_ok=True)
    closed.chmod(0)
    try:
        ended = run(home, command)
    finally:
        closed.chmod(0o700)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{closed}" in ended.stderr
    assert "Permission denied" in ended.stderr
    assert "Traceback" not in ended.stderr
