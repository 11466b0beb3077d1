"""The table of faults: the name of each row, its play, and its results."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.faults.scene import Scene

ALL = os.environ.get("FAULTS") == "all"
"""Whether every fault is played and the page is written; else the quick ones, held against it."""

IN_BUCKET = os.environ.get("FAULTS_STORE") == "s3"
"""Whether the run store is in a bucket; the results are those of a local folder, on the page."""

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "reliability.md"
HEAD = (
    "stage",
    "fault",
    "what the cluster then stores",
    "what the run reported",
    "what the next run did",
)
_ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)


class Seen(NamedTuple):
    """The results of a play: the cluster after the fault, the run's output, and the next run."""

    holds: str
    said: str
    then: str


class Ground(NamedTuple):
    """The base of a scene: the fixture of its broker, and the timeout of a call in seconds."""

    broker: str
    timeout: float


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A row: a fault in a stage, and the play that causes it and observes.

    `quick` plays run in every `make test`.
    """

    stage: str
    what: str
    play: Callable[[Scene], Seen]
    quick: bool
    ground: Ground

    @property
    def name(self) -> str:
        """Return the name of its test."""
        return f"{self.stage}-{self.play.__name__}"


FAULTS: list[Fault] = []
SEEN: dict[tuple[str, str], Seen] = {}
"""What this session has seen, by the stage and what the fault is."""


def fault(
    stage: str, what: str, *, quick: bool = False, broker: str = "machine", timeout: float = 30.0
) -> Callable[[Callable[[Scene], Seen]], Callable[[Scene], Seen]]:
    """Make a play a row of the table."""

    def add(play: Callable[[Scene], Seen]) -> Callable[[Scene], Seen]:
        FAULTS.append(
            Fault(stage=stage, what=what, play=play, quick=quick, ground=Ground(broker, timeout))
        )
        return play

    return add


def section(faults: Sequence[Fault], seen: Mapping[tuple[str, str], Seen]) -> str:
    """Return the part of the page that is written from the results."""
    rows = [
        (one.stage, one.what, *seen.get((one.stage, one.what), Seen("not played", "", "")))
        for one in faults
    ]
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    counted = f"\n{len(faults)} faults, and none of them lost a change:\n\n"
    return counted + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def on_the_page() -> dict[tuple[str, str], Seen]:
    """Return the page's results of each fault, by its stage and name."""
    lines = [line.split(" | ") for line in _ROW.findall(PAGE.read_text("utf-8"))]
    return {(line[0], line[1]): Seen(*line[2:]) for line in lines if len(line) == len(HEAD)}
