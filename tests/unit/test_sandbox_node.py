"""A node's process is identified before it is signalled, and has ended when stop returns."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.cli.commands.sandbox import sandbox
from quota_ops.lab.kafka.jars import DEFAULT_VERSION, pinned_versions
from quota_ops.lab.kafka.node import RunningNode, build_mark, read_node, save_node
from quota_ops.lab.kafka.sandbox import (
    AUTHENTICATIONS,
    DEMO_CLUSTER_ID,
    find_cluster_id,
    find_sandbox,
)

SLEEP = "import time; time.sleep(60)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); {SLEEP}"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Collect the processes that a test starts, and end them after it."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def node(folder: Path, pid: int, started: float = 0.0) -> RunningNode:
    """Return a node of one port whose process has the given id."""
    return RunningNode(
        id=1,
        cluster_id="c",
        version="4.3.1",
        pid=pid,
        mark=build_mark(folder),
        ports={"PLAINTEXT": 9},
        folder=folder,
        started=started,
    )


def test_another_process_with_the_old_id_is_not_touched(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """After a reboot the id may be another process's: the node then counts as dead."""
    elsewhere = build_mark(tmp_path / "node-10")
    started.append(subprocess.Popen([sys.executable, "-c", SLEEP, elsewhere]))
    stale = node(tmp_path / "node-1", started[0].pid)
    assert not stale.alive
    stale.stop()
    assert started[0].poll() is None


def test_a_dead_process_is_dead(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    """An ended process is not alive, neither before its parent collects it nor after."""
    started.append(process := subprocess.Popen([sys.executable, "-c", SLEEP, build_mark(tmp_path)]))
    running = node(tmp_path, process.pid)
    seen = [running.alive]
    running.stop()
    seen.append(running.alive)
    assert process.wait() == -signal.SIGTERM
    seen.append(running.alive)
    assert seen == [True, False, False]


def test_a_process_deaf_to_sigterm_is_killed(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    """A process that does not end within the grace period gets SIGKILL."""
    command = [sys.executable, "-c", DEAF, build_mark(tmp_path)]
    started.append(process := subprocess.Popen(command, stdout=subprocess.PIPE))
    assert process.stdout
    process.stdout.readline()
    node(tmp_path, process.pid).stop(grace=0.2)
    assert process.wait() == -signal.SIGKILL


def test_what_was_written_down_is_known_again(tmp_path: Path) -> None:
    """A later command reads the node from its state file."""
    save_node(node(tmp_path, 4711))
    assert read_node(tmp_path) == node(tmp_path, 4711)


@pytest.mark.parametrize("text", [None, "", '{"id": 1, "pi', "{}", "[]"])
def test_half_a_state_file_is_no_node(tmp_path: Path, text: str | None) -> None:
    """Without a state file, or with one cut short by a crash, there is no node."""
    if text is not None:
        (tmp_path / "node.json").write_text(text)
    assert read_node(tmp_path) is None


def test_a_status_is_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status is shown in words, and by the exit code."""
    monkeypatch.setenv("QUOTA_OPS_SANDBOX", str(tmp_path))
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path))
    ended = CliRunner().invoke(sandbox, ["status"])
    assert (ended.exit_code, ended.output) == (3, "running     no\n")


@pytest.mark.parametrize("command", ["status", "start"])
def test_a_broker_of_several_that_ended_is_told(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: list[subprocess.Popen[bytes]],
) -> None:
    """The status names it, and a start does not end as if all brokers ran."""
    monkeypatch.setenv("QUOTA_OPS_SANDBOX", str(tmp_path))
    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path))
    folders = [tmp_path / f"node-{number}" for number in (1, 2)]
    for number, folder in enumerate(folders, start=1):
        folder.mkdir()
        started.append(subprocess.Popen([sys.executable, "-c", SLEEP, build_mark(folder)]))
        save_node(replace(node(folder, started[-1].pid), id=number))
    started[1].kill()
    started[1].communicate()

    ended = CliRunner().invoke(main, ["sandbox", command])
    assert ended.exit_code == 3
    assert ended.stderr == (
        "1 of 2 brokers of the sandbox ended: 2\n"
        "  Run: quota-ops sandbox stop && quota-ops sandbox start\n"
    )


def test_no_two_kinds_of_sandbox_share_a_ledger() -> None:
    """Each version, number of brokers and authentication has its own cluster id."""
    ids = {
        (version, brokers, auth): find_cluster_id(version, brokers, auth)
        for version in pinned_versions()
        for brokers in range(1, 6)
        for auth in (None, *AUTHENTICATIONS)
    }
    assert ids[DEFAULT_VERSION, 1, None] == DEMO_CLUSTER_ID
    assert len(set(ids.values())) == len(ids)
    assert {len(found) for found in ids.values()} == {len(DEMO_CLUSTER_ID)}
    assert all(found.isalnum() for found in ids.values()), "not an option of Kafka's tools"


def test_the_sandbox_that_was_started_last_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a stop, the status is that of the sandbox that ran, not of another kind."""
    monkeypatch.setenv("QUOTA_OPS_SANDBOX", str(tmp_path))
    for seconds, folder in enumerate(("brokers-3", "brokers-3-scram", ".", "brokers-2")):
        home = tmp_path / folder / "node-1"
        home.mkdir(parents=True)
        save_node(node(home, pid=2**22, started=seconds))
    assert not find_sandbox().running
    assert [one.folder for one in find_sandbox().nodes] == [tmp_path / "brokers-2" / "node-1"]
