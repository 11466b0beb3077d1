"""Commands beside a run with a request in flight: each names that run."""

from dataclasses import dataclass, field
from shutil import copytree
from typing import Any

import pytest

from quota_ops.runs.chain import CHAINS, run_stages
from tests.broker.stage_runs import KEY
from tests.lab import Lab

BOB, WANTED = "user=bob", {"user=bob": {KEY: 5.0}}
COMMANDS = {
    "hold": ("hold", "demo", "--names", BOB, "--until", "1h", "--reason", "INC-1"),
    "hold of another folder": (
        *("hold", "second", "--desired-state", "other", "--names", BOB, "--until", "1h"),
        *("--reason", "INC-1"),
    ),
    "alter": ("alter", "demo", "--names", BOB, "--add", f"{KEY}=7", "--reason", "INC-1"),
    "adopt": ("adopt", "demo", "--names", BOB, "--reason", "INC-1"),
    "release": ("release", "demo", "--from-ledger", "--names", BOB, "--reason", "INC-1"),
}


@pytest.mark.local_store
@pytest.mark.parametrize("verb", COMMANDS)
def test_it_names_the_run(lab: Lab, verb: str) -> None:
    """While a request of a run is in flight, each command names it on stderr, and succeeds."""
    lab.desire(WANTED)
    copytree(lab.folder, lab.root / "other" / "second")
    lab.put({BOB: {KEY: 1.0}})
    beside = Beside(lab, COMMANDS[verb])
    run = lab.start(connect=lambda: beside)
    name = f"demo/{run.folder.place.name}"

    run_stages(run, CHAINS["reconcile"])

    words = f"run {name} is writing {BOB} at this moment: look again when it has ended"
    assert beside.said == [(0, f"{words} (quota-ops show {name})\n")]
    assert lab.stored() == WANTED


def test_no_run_is_named_where_none_writes_it(lab: Lab) -> None:
    """Another entity of the run, and a run that has ended, do not cause a second read."""
    lab.desire(WANTED)
    other = ("hold", "demo", "--names", "user=eve", "--until", "1h", "--reason", "INC-1")
    beside = Beside(lab, other)
    run_stages(lab.start(connect=lambda: beside), CHAINS["reconcile"])

    assert beside.said == [(0, "")]
    ended = lab.call(*COMMANDS["hold"])
    assert (ended.returncode, ended.stderr) == (0, "")


@dataclass
class Beside:
    """A cluster with a delayed write: a command is called while the request is in flight."""

    lab: Lab
    command: tuple[str, ...]
    said: list[tuple[int, str]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lab.cluster, name)

    def apply(self, alterations: Any) -> Any:
        """Call the command, and send."""
        ended = self.lab.call(*self.command)
        self.said.append((ended.returncode, ended.stderr))
        return self.lab.cluster.apply(alterations)
