"""A command that is killed by SIGKILL late, and how the next run records its end."""

import json
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from itertools import count

import pytest

from quota_ops.store.run.files import ALTER
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState
from tests.broker.killing import die_in_file, die_in_request, kill_at_step
from tests.broker.stage_runs import KEY
from tests.broker.test_stages_killed import ALLOW, Play, rows
from tests.lab import Lab
from tests.writing import State, settle

BEFORE: State = {f"user=a{number}": {KEY: 1.0} for number in range(3)}
ALTERED: dict[str, float | None] = {
    **dict.fromkeys(("user=a0", "user=a1"), 7.0),
    "user=a2": None,
    **dict.fromkeys(("user=b0", "user=b1"), 8.0),
}
"""Five changes, in two requests: two limits move, one is cleared, and two are new."""
FILES_AND_REQUESTS = 20
"""What the alter writes and sends at the least."""
UNDO = ("--allow", "unlimited", "--allow", "cut", "--reason", "a test")


def alter_of_five(lab: Lab) -> tuple[str, ...]:
    """Return the command that alters five limits, from a file."""
    source = lab.root / "changes.jsonl"
    lines = (
        {"entity": {"user": name.removeprefix("user=")}, "key": KEY, "value": value}
        for name, value in ALTERED.items()
    )
    source.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return ("alter", "demo", "--from", str(source), *UNDO)


def kill(lab: Lab, die: Callable[..., None], command: tuple[str, ...]) -> bool:
    """Run a command in a process that may be killed; return whether it was."""
    killed = Play(lab, "late").kill(die, command)
    settle(lab.cluster)
    return killed


def list_ends(run: RunFolder) -> list[str]:
    """Return the names of the records of a run's end."""
    return sorted(name for name in run.place.list() if fnmatch(name, "end-*.json"))


def list_marks(lab: Lab) -> list[str]:
    """Return the runs that have not recorded their end, without drafts of a mark."""
    names = (lab.store.root / "at_work" / "demo").list()
    return [name for name in names if not name.endswith(".part")]


def assert_settled_and_undone(lab: Lab) -> None:
    """Assert that the last run knows what it changed, gets one end, and can be undone."""
    altered = [run for run in lab.runs if run.has(ALTER)]
    before, now = rows(BEFORE), rows(lab.stored())
    changed = {row for row in before.keys() | now.keys() if now.get(row) != before.get(row)}

    assert lab.call("reconcile", "demo").returncode == 0

    assert list_marks(lab) == []
    for run in altered:
        state = RunState(run)
        assert changed <= {(row.entity, row.key) for row in state.written | state.unknown}
        ends = list_ends(run)
        assert ends == ["end-0001.json"] or (ends == [] and not state.has_sent)
        undone = lab.call("alter", "demo", "--undo", run.place.name, *UNDO)
        assert undone.returncode == (0 if changed else 1), undone.stderr
    assert altered or not changed
    settle(lab.cluster)
    assert lab.stored() == BEFORE


@pytest.mark.local_store
@pytest.mark.matrix
def test_an_alter_killed_at_every_step(lab: Lab) -> None:
    """An alter that is killed at any file or request gets its end from the next run.

    What it changed is known, and can be undone.
    """
    lab.desire({})
    for step in count(1):
        lab.put({**{name: {KEY: None} for name in ALTERED}, **BEFORE})
        killed = kill(lab, partial(kill_at_step, step), alter_of_five(lab))
        assert_settled_and_undone(lab)
        for run in lab.runs:
            (run.place / ALTER).delete()
        if not killed:
            break
    assert step > FILES_AND_REQUESTS


@pytest.mark.local_store
@pytest.mark.parametrize("file", ["verification.json", "end-0001.json"])
def test_an_alter_killed_late(file: str, lab: Lab) -> None:
    """An alter that is killed after its requests gets its end from the next run, at once."""
    lab.desire({})
    lab.put(BEFORE)
    assert kill(lab, partial(die_in_file, file), alter_of_five(lab))
    assert_settled_and_undone(lab)


@pytest.mark.local_store
def test_an_alter_killed_while_it_writes_is_read_back(lab: Lab) -> None:
    """Its run is interrupted until verify has read back what it wrote, as a run of Git is."""
    lab.desire({})
    lab.put(BEFORE)
    assert kill(lab, partial(die_in_request, 1, before=False), alter_of_five(lab))
    run = str(lab.runs[-1].place)
    listed = [lab.call("runs").stdout]

    verified = lab.call("verify", "--run", run)

    listed.append(lab.call("runs").stdout)
    assert verified.stdout.splitlines()[:2] == [
        "applied: 3 accepted, 2 not sent",
        "broker 1 agrees",
    ]
    found = "Altered: 3 of 5 changes on demo were written, by root, overriding guard unlimited"
    assert lab.call("show", run).stdout.startswith(found)
    assert ["  Interrupted  " in one for one in listed] == [True, False], listed


@pytest.mark.local_store
def test_a_reconcile_killed_late(lab: Lab) -> None:
    """A reconcile that is killed after its writes have ended gets its end from the next run.

    A DAG run does not: its next task may still begin.
    """
    lab.put(BEFORE)
    lab.desire({"user=a0": {KEY: 5.0}})
    command = ("reconcile", "demo", *ALLOW, "--reason", "a test")
    assert kill(lab, partial(die_in_file, "verification.json"), command)
    run = lab.runs[-1]

    for dag_id, ends in (("quota_ops_demo", []), (None, ["end-0001.json"])):
        run.change_about(dag_id=dag_id)
        assert lab.call("reconcile", "demo").returncode == 0
        assert list_ends(run) == ends

    assert list_marks(lab) == []
