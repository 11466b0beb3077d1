"""The ways to install the wheel that the pages show, with a package index."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Page

UV = Path(sys.executable).with_name("uv")


def run(*command: str | Path, text: str = "") -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(folder: Path, *requirements: str, bounds: Sequence[str | Path]) -> Path:
    """Install requirements in a new environment, and return its Python."""
    run(UV, "venv", "--quiet", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    run(UV, "pip", "install", "--quiet", "--python", python, *bounds, *requirements)
    return python


def resolve(*requirements: str, bounds: Sequence[str | Path] = ()) -> set[str]:
    """Return the versions that an installer chooses for requirements, as NAME==VERSION."""
    options = ("--quiet", "--no-header", "--no-annotate", "--python", sys.executable)
    listed = run(UV, "pip", "compile", *options, *bounds, "-", text="\n".join(requirements))
    return set(re.findall(r"^\S+==\S+", listed, re.MULTILINE))


@pytest.mark.matrix
@pytest.mark.timeout(1200)  # it installs a gigabyte twice
def test_the_extra_changes_no_package_of_airflow(tmp_path: Path) -> None:
    """The page's command keeps the versions that Airflow has alone, with constraints or without.

    Both ways, pip's resolution is also installed, and the command and the provider run. The newest
    versions that Airflow allows stand in for its constraints file.
    """
    here = ("--wheel", "--no-build-isolation", "--python", sys.executable)
    run(UV, "build", "--quiet", *here, "--out-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    page = Page(ROOT / "docs" / "how-to" / "airflow.md").text
    command = r"^pip install (\S+) 'quota_ops-\S+whl(\[\S+\])'"
    ((airflow, extras),) = re.findall(command, page, re.MULTILINE)
    image = (ROOT / "docs" / "examples" / "airflow" / "Dockerfile").read_text("utf-8")
    alone = resolve(airflow)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(alone))
    wanted = (airflow, f"quota-ops{extras} @ {wheel.as_uri()}")

    assert f'{airflow} "/tmp/{wheel.name}{extras}"' in image
    for bounds in ((), ("--constraint", constraints)):
        found = resolve(*wanted, bounds=bounds)
        assert alone - found == set()
        assert any(one.startswith("apache-airflow-providers-git==") for one in found)
        python = install(tmp_path / f"environment-{len(bounds)}", *wanted, bounds=bounds)
        assert run(python.with_name("quota-ops"), "--version").startswith("quota-ops, version ")
        loads = (
            "import quota_ops.airflow, airflow.providers.git, pyspark; print(pyspark.__version__)"
        )
        pyspark = run(python, "-c", loads).splitlines()[-1]
        assert f"pyspark=={pyspark}" in found, "pyspark-client would replace its files"
