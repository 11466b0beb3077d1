"""The command that removes old runs: what it prints, and what it rejects."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops import cli
from quota_ops.store.run_store import RunStore, open_place
from tests.unit.test_retention import OLD, leave


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> RunStore:
    return RunStore(open_place(tmp_path / "store"))


def test_the_command_lists_and_removes(store: RunStore) -> None:
    """A dry run removes nothing and shows the same numbers; JSON lists each path."""
    leave(store, "old", OLD, 1, plan={"digest": "abc"})
    old = store.root / "runs" / "demo" / "old"
    size = sum(leaf.size for leaf in old.walk())
    arguments = ["prune", "--keep", "90d", "--run-store", str(store.root)]

    dry = CliRunner().invoke(cli.main, [*arguments, "--dry-run"])
    told = json.loads(CliRunner().invoke(cli.main, [*arguments, "--format", "json"]).stdout)
    again = CliRunner().invoke(cli.main, arguments)

    assert dry.stdout.split("\n")[0].split() == ["cluster", "what", "number", "size"]
    assert dry.stdout.split("\n")[1].split() == ["demo", "run", "1", str(size), "B"]
    assert dry.stdout.split("\n")[3].startswith(f"{size} B would be removed from {store.root}; ")
    path = str(store.root / "runs" / "demo" / "old")
    assert told["removed"] is True
    gone = {"what": "run", "cluster": "demo", "path": path, "bytes": size, "unknown": []}
    assert told["expired"] == [gone]
    assert again.stdout.startswith(f"Nothing to remove from {store.root}: no run began before ")


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("12h", "--keep 12h is less than a day"),
        ("soon", "--keep 'soon' is not a duration: write, for example, 30m, 2h or 1d12h"),
    ],
)
def test_a_length_of_time_that_cannot_be(keep: str, message: str, store: RunStore) -> None:
    """A run of the last day may still be writing, so a shorter time is rejected."""
    ended = CliRunner().invoke(cli.main, ["prune", "--keep", keep, "--run-store", str(store.root)])

    assert ended.exit_code == 2
    assert ended.stderr.startswith(message)
