"""One process at a time applies a run."""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from quota_ops.model.errors import Claimed
from quota_ops.store.place import Place
from quota_ops.store.run_claim import claim_run
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_store import RunStore, open_place

CLAIM = """
import sys
from quota_ops.store.run_claim import claim_run
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_store import open_place
with claim_run(RunFolder(open_place(sys.argv[1]))):
    print("claimed", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> RunFolder:
    return RunFolder(RunStore(open_place(tmp_path)).new_run("demo", "one"))


def claims(run: RunFolder) -> list[str]:
    """Return the names of a run's claims."""
    return [name for name in run.place.list() if name.startswith("claim-")]


def test_a_run_is_claimed_by_one_process(run: RunFolder) -> None:
    """While a process has claimed a run, no other can; once it was killed or has ended, one can."""
    with Popen(
        [sys.executable, "-c", CLAIM, str(run.place)], stdin=PIPE, stdout=PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "claimed\n"
        why = "another process has applied run demo/one since 2"
        with pytest.raises(Claimed, match=why), claim_run(run):
            raise AssertionError
        process.kill()
        process.wait()

        with claim_run(run), pytest.raises(Claimed), claim_run(run):
            raise AssertionError
        with claim_run(run):
            pass
    assert claims(run) == ["claim-0001.json", "claim-0002.json", "claim-0003.json"]


@pytest.mark.parametrize(("age", "is_free"), [(0, False), (59, False), (61, True)])
def test_a_process_that_cannot_be_seen(run: RunFolder, age: int, *, is_free: bool) -> None:
    """A claim from another machine counts for a minute: people approve a run at the same time."""
    since = (datetime.now(UTC) - timedelta(seconds=age)).isoformat()
    other = {"process": ["another boot", "n", 1, "2"], "since": since, "ended": False}
    (run.place / "claim-0001.json").create(json.dumps(other).encode())

    try:
        with claim_run(run):
            assert is_free
    except Claimed:
        assert not is_free


def test_of_two_processes_that_claim_at_once_one_wins(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that finds no claim, and whose own is refused, has lost the race."""
    with claim_run(run):
        monkeypatch.setattr(Place, "exists", lambda _: False)
        with pytest.raises(Claimed), claim_run(run):
            raise AssertionError
