"""The steps of the page's Dockerfile, in a clean root: no container engine is needed."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT

DOCKERFILE = ROOT / "docs" / "examples" / "airflow" / "Dockerfile"
UV = Path(sys.executable).with_name("uv")
NEEDED = ("debootstrap", "unshare", "chroot")
AUTHORITIES = Path("/usr/local/share/ca-certificates")
"""Certificate authorities of a company, which a person adds to a base image, too."""
pytestmark = [
    pytest.mark.matrix,
    pytest.mark.timeout(1800),  # downloads a Debian, Airflow and Spark
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, NEEDED)),
        reason=f"needs root and {', '.join(NEEDED)}",
    ),
]


def read_steps() -> Iterator[tuple[str, str]]:
    """Yield each instruction of the Dockerfile with its text, continued lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE))
    for line in text.splitlines():
        instruction, _, rest = line.partition(" ")
        yield instruction, rest


def run(root: Path, user: str, command: str) -> str:
    """Run a command in the root as a user with an own /proc, and return its output."""
    home = "/root" if user == "root" else f"/home/{user}"
    variables = {
        "HOME": home,
        "PATH": f"{home}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    enter = ("unshare", "--mount", "--pid", "--fork", f"--mount-proc={root / 'proc'}", "chroot")
    done = subprocess.run(
        [*enter, f"--userspec={user}", str(root), "/bin/sh", "-euc", f"cd {home}; {command}"],
        env=variables | {name: os.environ[name] for name in os.environ if name.startswith("PIP_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "Spark will start slower" not in done.stderr, done.stderr[-4000:]
    return done.stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a Debian with a user airflow and its Python, in place of Airflow's own image.

    That image cannot be fetched without an engine; it is a Debian 12 with Python and Airflow.
    """
    root = tmp_path / "root"
    base = ("--variant=minbase", "--include=ca-certificates,python3-venv", "bookworm")
    debootstrap = shutil.which("debootstrap") or ""
    subprocess.run([debootstrap, *base, root], check=True, capture_output=True)
    shutil.copytree(AUTHORITIES, root / AUTHORITIES.relative_to("/"), dirs_exist_ok=True)
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")  # as an engine writes it
    run(root, "root", "update-ca-certificates; useradd --create-home --uid 50000 --gid 0 airflow")
    run(root, "airflow", "python3 -m venv .local")
    return root


def test_the_steps_of_the_image_work_in_a_clean_root(root: Path, tmp_path: Path) -> None:
    """Each step after FROM succeeds as its user; then the command and Airflow find quota-ops."""
    here = ("--wheel", "--no-build-isolation", "--python", sys.executable)
    command = (UV, "build", "--quiet", *here, "--out-dir", tmp_path, ROOT)
    subprocess.run(command, check=True, capture_output=True)
    user = "root"
    (_, base), *steps = read_steps()

    assert base == "apache/airflow:3.3.2-python3.11"
    for instruction, text in steps:
        if instruction == "USER":
            user = text
        elif instruction == "COPY":
            name, folder = text.split()
            shutil.copy(tmp_path / name, root / folder.strip("/"))
        else:
            assert instruction == "RUN"
            run(root, user, text)

    assert user == "airflow"
    assert run(root, user, "quota-ops --version") == "quota-ops, version 0.1.0\n"
    assert run(root, user, "airflow version").splitlines()[-1] == "3.3.2"
    assert "quota-ops" in run(root, user, "airflow providers list --output plain")
    options = "from quota_ops.sql.spark_archive import driver_options as f; print(f())"
    assert ".jsa" in run(root, user, f"python -c '{options}'")
