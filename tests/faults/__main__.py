"""Play every fault on real brokers, kill runs at every step, and write the reliability page.

`python -m tests.faults -k NAME` plays some; `--resume` leaves out those that held in the last run.
The last line is how many were to be played, were played and held, and which did not hold. A fault
whose time is up, or that ends its process, does not hold, and the faults after it are played.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.faults.held import End, read_ends, summarize

HERE = Path(__file__).parent
KEPT = HERE.parents[1] / "build" / "faults"
BROKER, OBJECTS = HERE.parent / "broker", HERE.parent / "objects"
IN_FOLDER = (
    str(HERE),
    *(str(BROKER / f"test_stages_{name}.py") for name in ("killed", "tampered")),
    *(str(OBJECTS / f"test_object_{name}.py") for name in ("place", "losses", "outage")),
)
# The quick ones again, with the run store in a bucket: their results are the same.
WEATHER = "--deselect=tests/faults/test_faults.py::test_any_weather"
IN_BUCKET = (str(HERE / "test_faults.py"), WEATHER)
PARTS = {
    "folder": (IN_FOLDER, {"FAULTS": "all"}),
    "bucket": (IN_BUCKET, {"FAULTS": "quick", "FAULTS_STORE": "s3"}),
}
FINE = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def play(
    options: Sequence[str],
    parts: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = PARTS,
    folder: Path = KEPT,
) -> int:
    """Play the parts, print how many faults held, and return the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    code = 0
    try:
        for part, (tests, settings) in parts.items():
            kept = folder / part
            if "--resume" not in options:
                kept.unlink(missing_ok=True)
            environment = {**os.environ, **settings, "FAULTS_HELD": str(kept)}
            given = [option for option in options if option != "--resume"]
            # By a signal, a fault whose time is up stops its brokers, and the next one is played.
            command = [sys.executable, "-m", "pytest", "-p", "tests.faults.held"]
            command += ["-o", "timeout_method=signal", *tests, *given]
            ended = _play_part(command, environment, kept)
            code = code or (ended if ended not in FINE else 0)
    finally:
        ends = {
            f"{name} ({part})": end
            for part in parts
            for name, end in read_ends(folder / part).items()
        }
        sys.stdout.write(summarize(ends))
    return code or int(any(end is not End.HELD for end in ends.values()))


def _play_part(command: Sequence[str], environment: Mapping[str, str], kept: Path) -> int:
    """Run pytest until no chosen fault is left that did not begin; return the first exit code."""
    code = subprocess.run(command, env=environment, check=False).returncode
    again = {**environment, "FAULTS_ONLY_CHOSEN": "1"}
    left = _count_chosen(kept)
    while left:
        subprocess.run(command, env=again, check=False)
        before, left = left, _count_chosen(kept)
        if left == before:  # pytest itself does not begin
            break
    return code


def _count_chosen(kept: Path) -> int:
    return list(read_ends(kept).values()).count(End.CHOSEN)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the last line is printed
    sys.exit(play(sys.argv[1:]))
