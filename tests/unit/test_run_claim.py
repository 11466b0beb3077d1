"""One process at a time applies a run, on one host or on several."""

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from subprocess import PIPE, Popen
from time import sleep, time

import pytest

from quota_ops.model.errors import Claimed
from quota_ops.store.places.process import Process
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run import claim as run_claim
from quota_ops.store.run.claim import claim_run, has_process_ended, is_at_work
from quota_ops.store.run.folder import RunFolder
from tests.places import on_disk

CLAIM = """
import sys
from pathlib import Path
from quota_ops.store.places import process
from quota_ops.store.run import claim as run_claim
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.places.run_store import open_place
run_claim.LEASE, run_claim.RENEWAL = 0.0, 0.1  # looks for a later claim each time
if len(sys.argv) > 2:
    process._BOOT = Path(sys.argv[2])
    run_claim.socket.gethostname = lambda: "other-host"
try:
    with run_claim.claim_run(RunFolder(open_place(sys.argv[1]))) as folder:
        print("claimed", flush=True)
        sys.stdin.readline()
        folder.require_claim()
        print("still claimed", flush=True)
except Exception as error:
    print(error.message, flush=True)
"""


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> RunFolder:
    return RunFolder(RunStore(open_place(tmp_path)).new_run("demo", "one"))


@contextmanager
def claiming(run: RunFolder, *boot: Path) -> Iterator[Popen[str]]:
    """Start a process that claims the run, by default of this host, until it reads a line."""
    command = [sys.executable, "-c", CLAIM, str(run.place), *map(str, boot)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "claimed\n"
        yield process


def end(process: Popen[str]) -> str:
    """Let a process continue to its end, and return what it printed."""
    return process.communicate("go on\n", timeout=30)[0]


def age(run: RunFolder) -> Path:
    """Let the first claim of a run look as if it was last renewed more than a lease ago."""
    claim = on_disk(run) / "claim-0001.json"
    before = time() - run_claim.LEASE - 1
    os.utime(claim, (before, before))
    return claim


def claims(run: RunFolder) -> list[str]:
    """Return the names of a run's claims."""
    return [name for name in run.place.list() if name.startswith("claim-")]


def test_a_run_is_claimed_by_one_process(run: RunFolder) -> None:
    """While a process has claimed a run, no other can; once it was killed or has ended, one can."""
    with claiming(run) as process:
        why = f"has been applying run demo/one since 2.*: process {process.pid} on host "
        with pytest.raises(Claimed, match=why), claim_run(run):
            raise AssertionError
        process.kill()
        process.wait()

        with claim_run(run), pytest.raises(Claimed), claim_run(run):
            raise AssertionError
        with claim_run(run):
            pass
    assert claims(run) == ["claim-0001.json", "claim-0002.json", "claim-0003.json"]


def test_a_process_of_another_host_keeps_its_claim_while_it_works(
    run: RunFolder, tmp_path: Path
) -> None:
    """A claim that is renewed lasts, however long the run takes; one of a killed process ends."""
    (boot := tmp_path / "boot").write_text("another boot")
    with claiming(run, boot) as process:
        claim = age(run)
        while time() - claim.stat().st_mtime > run_claim.LEASE:
            sleep(0.05)
        why = f"process {process.pid} on host other-host"
        with pytest.raises(Claimed, match=why), claim_run(run):
            raise AssertionError
        process.kill()
        process.wait()
        age(run)

        with claim_run(run) as folder:
            folder.require_claim()
    assert claims(run) == ["claim-0001.json", "claim-0002.json"]


def test_a_process_that_was_paused_finds_who_took_over(run: RunFolder, tmp_path: Path) -> None:
    """It sends nothing more, whether or not the other process has ended."""
    (boot := tmp_path / "boot").write_text("another boot")
    with claiming(run, boot) as process:
        os.kill(process.pid, signal.SIGSTOP)
        age(run)
        with claim_run(run):
            pass
        os.kill(process.pid, signal.SIGCONT)

        said = end(process)

    this = f"process {os.getpid()} on host {socket.gethostname()}"
    assert said.startswith(
        f"this process was paused, and {this} has been applying run demo/one since 2"
    )
    ended = [json.loads((run.place / name).read())["ended"] for name in claims(run)]
    assert ended == [True, True]


class Tomorrow(datetime):
    """The clock of a host that is a day ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Tomorrow":
        """Return this time tomorrow."""
        return super().now(tz) + timedelta(days=1)


def test_a_renewal_by_the_clock_of_the_store_counts(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host whose clock is ahead takes no run over from a process that is at work."""
    (boot := tmp_path / "boot").write_text("another boot")
    with claiming(run, boot) as process:
        monkeypatch.setattr(run_claim, "datetime", Tomorrow)
        with pytest.raises(Claimed, match="on host other-host"), claim_run(run):
            raise AssertionError
        assert end(process) == "still claimed\n"
    assert claims(run) == ["claim-0001.json"]


def test_of_two_processes_that_claim_at_once_one_wins(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that finds no claim, and whose own is refused, has lost the race."""
    with claim_run(run):
        monkeypatch.setattr(type(run.place), "exists", lambda _: False)
        with pytest.raises(Claimed), claim_run(run):
            raise AssertionError


@pytest.mark.parametrize(
    "content", ["", "[" * 3000, '{"host": "a", "process": [1], "since": "", "ended": false}']
)
def test_a_damaged_claim_counts_until_nobody_renews_it(content: str, run: RunFolder) -> None:
    """A process at work would renew it, and so repair it; a power cut leaves it as it is."""
    (run.place / "claim-0001.json").create(content.encode())
    assert is_at_work(run)
    with pytest.raises(Claimed, match="has not ended: process "), claim_run(run):
        raise AssertionError

    age(run)

    assert not is_at_work(run)
    with claim_run(run) as claimed:
        assert is_at_work(claimed)
    assert not is_at_work(run)


def test_a_process_of_another_machine_is_not_judged_by_its_number(run: RunFolder) -> None:
    """A process that is seen to have ended is not at work; one of elsewhere is, for a lease."""
    this = Process.current()
    assert this
    gone = this._replace(number=2**22)
    claim = run.place / "claim-0001.json"
    assert not is_at_work(run)

    def judge(process: Process | None) -> tuple[bool, bool]:
        holder = {"host": "a", "process": process, "since": "", "ended": False}
        claim.replace(json.dumps(holder).encode())
        return is_at_work(run), has_process_ended(run)

    assert judge(this) == (True, False)
    assert judge(gone) == judge(this._replace(started="1")) == (False, True)
    elsewhere = (
        this._replace(boot="another"),
        gone._replace(boot="another"),
        gone._replace(namespace="pid:[1]"),
        gone._replace(number=2**80),
        None,
    )
    for process in elsewhere:
        assert judge(process) == (True, False)
        age(run)
        assert (is_at_work(run), has_process_ended(run)) == (False, False)
