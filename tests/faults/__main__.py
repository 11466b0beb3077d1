"""Play faults on real brokers, write docs/reliability.md; `python -m tests.faults [-k NAME]`."""

import os
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    os.environ["FAULTS"] = "all"
    sys.exit(pytest.main([str(Path(__file__).parent), *sys.argv[1:]]))
