"""The table of faults: what each row is called, who plays it, and what was seen."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.faults.scene import Scene

ALL = os.environ.get("FAULTS") == "all"
"""Whether every fault is played and the page is written; else the quick ones, held against it."""

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
    """What a play saw: the cluster after the fault, the words of the run, and the next run."""

    holds: str
    said: str
    then: str


class Ground(NamedTuple):
    """What a scene stands on: the fixture of its broker, and seconds that a call waits."""

    broker: str
    timeout: float


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A row: a fault in a stage, and the play that brings it about and looks.

    `quick` plays run in every `make test`.
    """

    stage: str
    what: str
    play: Callable[[Scene], Seen]
    quick: bool
    ground: Ground

    @property
    def name(self) -> str:
        """How a test is called."""
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
    """The part of the page that is written from what was seen."""
    rows = [
        (one.stage, one.what, *seen.get((one.stage, one.what), Seen("not played", "", "")))
        for one in faults
    ]
    lines = [HEAD, ["---"] * len(HEAD), *rows]
    counted = f"\n{len(faults)} faults, and none of them lost a change:\n\n"
    return counted + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def on_the_page() -> dict[tuple[str, str], Seen]:
    """What the page says of each fault, by its stage and what it is."""
    lines = [line.split(" | ") for line in _ROW.findall(PAGE.read_text("utf-8"))]
    return {(line[0], line[1]): Seen(*line[2:]) for line in lines if len(line) == len(HEAD)}
