"""Play every fault on real brokers, kill runs at every step, and write the reliability page.

`python -m tests.faults -k NAME` plays some.
"""

import os
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    os.environ["FAULTS"] = "all"
    here = Path(__file__).parent
    killed = here.parent / "broker" / "test_stages_killed.py"
    objects = here.parent / "objects"
    stores = [str(objects / f"test_object_{name}.py") for name in ("place", "losses")]
    sys.exit(pytest.main([str(here), str(killed), *stores, *sys.argv[1:]]))
