"""The marks of runs that write, and what they show about a run."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from quota_ops.model.runs.stages import Life
from quota_ops.store.places.local import LocalPlace
from quota_ops.store.places.place import Place
from quota_ops.store.places.process import Process
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.marks import GRACE, at_work, find_liveness, is_overdue

LONG_AGO = (datetime.now(UTC) - 2 * GRACE).isoformat()
JUST_NOW = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Place:
    """Create a run that was writing."""
    run = RunStore(open_place(tmp_path)).new_run("demo", "one")
    with at_work(run):
        assert find_liveness(run) is Life.RUNNING
    assert find_liveness(run) is Life.GONE
    return run


@pytest.mark.parametrize(
    ("content", "overdue"),
    [
        (f'{{"machine": "another", "since": "{LONG_AGO}"}}', True),
        (f'{{"machine": "another", "since": "{JUST_NOW}"}}', False),
        ("", True),
        ("{", True),
        ("[" * 3000, True),
        ("{}", True),
        ('{"machine": "another", "since": "2026-01-01"}', True),
        (None, False),
    ],
    ids=["long ago", "just now", "empty", "half", "deep", "no fields", "no time", "no mark"],
)
def test_a_run_is_given_up(content: str | None, run: Place, *, overdue: bool) -> None:
    """A run counts as dead after an hour or a power cut; not if its end is recorded."""
    mark = run.parent.parent.parent / "at_work" / "demo" / "one"
    mark.delete() if content is None else mark.replace(content.encode())

    assert find_liveness(run) is (Life.GONE if overdue else Life.UNKNOWN)
    assert is_overdue(run) is overdue


MARK = """
import sys
from quota_ops.store.run.marks import at_work
from quota_ops.store.places.run_store import open_place
with at_work(open_place(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


def test_a_process_without_locks_is_seen_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files have no locks, a run counts as running or interrupted until its process ends."""
    run = RunStore(open_place(tmp_path)).new_run("demo", "one")
    monkeypatch.setattr(LocalPlace, "is_locked", lambda *_: None)
    arguments = [sys.executable, "-c", MARK, str(run)]
    with Popen(arguments, stdin=PIPE, stdout=PIPE, env=os.environ) as process:
        assert process.stdout
        process.stdout.readline()
        assert find_liveness(run) is Life.UNKNOWN
        process.kill()
        process.wait()
    assert find_liveness(run) is Life.GONE


def test_another_machine_is_not_judged(run: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of another boot or container, or a damaged note of one, never counts as ended."""
    monkeypatch.setattr(LocalPlace, "is_locked", lambda *_: None)
    this = Process.current()
    assert this
    gone = this._replace(number=2**22)
    mark = run.parent.parent.parent / "at_work" / "demo" / "one"

    def liveness(process: object) -> Life:
        note = {"machine": "m", "process": process, "since": JUST_NOW}
        mark.replace(json.dumps(note).encode())
        return find_liveness(run)

    assert liveness(gone) is Life.GONE
    assert liveness(this._replace(started="1")) is Life.GONE
    for other in (
        this,
        gone._replace(boot="another"),
        gone._replace(namespace="pid:[1]"),
        gone[:3],
        (*gone[:2], "x", "1"),
        (*gone[:2], 2**80, "1"),
        None,
    ):
        assert liveness(other) is Life.UNKNOWN
