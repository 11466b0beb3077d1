"""The command that removes old runs: what it prints, and what it rejects."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from time_machine import TimeMachineFixture

from quota_ops import cli
from quota_ops.model.moment import iso_utc
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.folder import RunFolder
from tests.places import on_disk
from tests.unit.test_retention import OLD, leave


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> RunStore:
    return RunStore(open_place(tmp_path / "store"))


def test_the_command_lists_and_removes(store: RunStore) -> None:
    """A dry run removes nothing and shows the same numbers; JSON lists each path."""
    leave(store, "old", OLD, 1, plan={"digest": "abc"})
    for number in range(2, 6):
        leave(store, f"young-{number}", iso_utc(datetime.now(UTC)), number, plan={"digest": "abc"})
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


def test_a_clock_that_is_ahead_removes_no_run(
    store: RunStore, time_machine: TimeMachineFixture
) -> None:
    """A clock 400 days ahead removes no run that is young beside the newest, and is pointed out."""
    for number in (1, 2):
        leave(store, f"run-{number}", f"2026-11-2{number}T00:00:00Z", number, plan={"digest": "a"})
    time_machine.move_to("2027-12-27T00:00:00Z")

    command = ["prune", "--keep", "90d", "--run-store", str(store.root)]
    ended = CliRunner().invoke(cli.main, command)

    assert (ended.exit_code, ended.stdout) == (
        0,
        f"Nothing to remove from {store.root}: no run began before 2026-08-24 00:00 UTC.\n",
    )
    assert ended.stderr == (
        "The time to keep counts back from the run that began at 2026-11-22 00:00 UTC, 400 d "
        "before this machine's clock. If runs began since, a clock is or was wrong: synchronize "
        "it, and prune again after a few more runs.\n"
    )


@pytest.mark.parametrize("year", [2025, 2030])
def test_a_wrong_clock_of_the_store_or_one_that_is_behind_removes_no_run(
    year: int, store: RunStore, time_machine: TimeMachineFixture
) -> None:
    """Neither the times of files nor a clock that was set back make a run old."""
    for number in (1, 2):
        leave(store, f"run-{number}", f"2026-11-2{number}T00:00:00Z", number, plan={"digest": "a"})
    moved = datetime(year, 1, 1, tzinfo=UTC).timestamp()
    for leaf in store.root.walk():
        os.utime(on_disk(store.root.below(leaf.path)), (moved, moved))
    time_machine.move_to("2025-06-01T00:00:00Z")

    ended = CliRunner().invoke(
        cli.main, ["prune", "--keep", "1d", "--run-store", str(store.root), "--dry-run"]
    )

    assert (ended.exit_code, ended.stdout[:17]) == (0, "Nothing to remove")


def test_runs_of_a_clock_that_was_ahead_do_not_age_the_others(store: RunStore) -> None:
    """Up to three runs of a time far ahead make no other run old, and a fourth one does."""
    command = ["prune", "--keep", "90d", "--run-store", str(store.root), "--dry-run"]
    leave(store, "run-1", "2024-11-21T00:00:00Z", 1, plan={"digest": "a"})
    shown = []
    for number in range(2, 6):
        leave(store, f"run-{number}", f"2026-11-0{number}T00:00:00Z", number, plan={"digest": "a"})
        shown.append(CliRunner().invoke(cli.main, command).stdout.startswith("Nothing to remove"))

    assert shown == [True, True, True, False]


def test_what_could_not_be_removed_does_not_count(store: RunStore) -> None:
    """A run that is being applied stays, and is named; the screen counts the others alone."""
    for number, name in enumerate(("busy", "old"), 1):
        leave(store, name, OLD, number, plan={"digest": "a"})
    for number in range(3, 7):
        leave(store, f"young-{number}", iso_utc(datetime.now(UTC)), number, plan={"digest": "a"})
    busy, command = store.root / "runs" / "demo" / "busy", ["prune", "--keep", "90d"]

    with claim_run(RunFolder(busy)):
        ended = [
            CliRunner().invoke(cli.main, [*command, "--run-store", str(store.root)])
            for _ in range(2)
        ]

    assert ended[0].stdout.split("\n")[1].split()[:3] == ["demo", "run", "1"]
    assert [run.exit_code for run in ended] == [2, 2]
    assert (ended[1].stdout.strip(), ended[1].stderr.split("\n")[0]) == (
        "",
        "1 of 1 could not be removed:",
    )
    assert ended[1].stderr.split("\n")[1].startswith(f"  {busy}: another process has been applying")


def test_a_store_that_was_filled_today(store: RunStore) -> None:
    """The command that a full disk is answered with removes runs of the same day."""
    for number, minutes in enumerate((150, 100, 50, 0), 1):
        began = iso_utc(datetime.now(UTC) - timedelta(minutes=minutes))
        leave(store, f"run-{number}", began, number, plan={"digest": "a"})

    command = ["prune", "--keep", "1h", "--run-store", str(store.root), "--format", "json"]
    ended = json.loads(CliRunner().invoke(cli.main, command).stdout)

    assert [Path(run["path"]).name for run in ended["expired"]] == ["run-1", "run-2"]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("59m", "--keep 59m is less than an hour"),
        ("soon", "--keep 'soon' is not a duration: write, for example, 30m, 2h or 1d12h"),
    ],
)
def test_a_length_of_time_that_cannot_be(keep: str, message: str, store: RunStore) -> None:
    """A run of the last hour may still be working, so a shorter time is rejected."""
    ended = CliRunner().invoke(cli.main, ["prune", "--keep", keep, "--run-store", str(store.root)])

    assert ended.exit_code == 2
    assert ended.stderr.startswith(message)
