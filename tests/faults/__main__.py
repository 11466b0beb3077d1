"""Play every fault on real brokers, kill runs at every step, and write the reliability page.

`python -m tests.faults -k NAME` plays some.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    os.environ["FAULTS"] = "all"
    here = Path(__file__).parent
    stages = [
        str(here.parent / "broker" / f"test_stages_{name}.py") for name in ("killed", "tampered")
    ]
    objects = here.parent / "objects"
    stores = [str(objects / f"test_object_{name}.py") for name in ("place", "losses")]
    ended = pytest.main([str(here), *stages, *stores, *sys.argv[1:]])
    # The quick ones again, with the run store in a bucket: their results are the same.
    weather = "--deselect=tests/faults/test_faults.py::test_any_weather"
    command = [sys.executable, "-m", "pytest", str(here / "test_faults.py"), weather, *sys.argv[1:]]
    environment = {**os.environ, "FAULTS": "quick", "FAULTS_STORE": "s3"}
    again = subprocess.run(command, env=environment, check=False).returncode
    sys.exit(ended or (again if again != pytest.ExitCode.NO_TESTS_COLLECTED else 0))
