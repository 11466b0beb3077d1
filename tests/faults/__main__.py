"""Play every fault on real brokers, kill runs at every step, and write the reliability page.

`python -m tests.faults -k NAME` plays some; `--resume` leaves out those that held in the last run.
The last line is how many held, and which did not.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.held import read_held

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


def play(options: list[str]) -> int:
    """Play both parts, print how many faults held, and return the exit code."""
    KEPT.mkdir(parents=True, exist_ok=True)
    lost, count, code = [], 0, 0
    for part, (tests, settings) in PARTS.items():
        kept = KEPT / part
        if "--resume" not in options:
            kept.unlink(missing_ok=True)
        environment = {**os.environ, **settings, "FAULTS_HELD": str(kept)}
        given = [option for option in options if option != "--resume"]
        command = [sys.executable, "-m", "pytest", "-p", "tests.faults.held", *tests, *given]
        ended = subprocess.run(command, env=environment, check=False).returncode
        held = read_held(kept)
        lost += [f"{name} ({part})" for name, has_held in held.items() if not has_held]
        count += len(held)
        code = code or (ended if ended not in FINE else 0)
    failed = f"; not: {', '.join(lost)}" if lost else ""
    sys.stdout.write(f"{count - len(lost)} of {count} held{failed}\n")
    return code


if __name__ == "__main__":
    sys.exit(play(sys.argv[1:]))
