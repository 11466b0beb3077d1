"""The marks of runs that write, and what they show about a run."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quota_ops.store.place import Place
from quota_ops.store.run_marks import GRACE, Life, at_work, find_liveness, is_overdue
from quota_ops.store.run_store import RunStore, open_place

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

    assert find_liveness(run) is Life.UNKNOWN
    assert is_overdue(run) is overdue
