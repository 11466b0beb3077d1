"""Build the source archive and from it the wheel, into a folder, and check them.

The wheel must have every file of the packages and nothing else, be byte for byte what the
checkout builds, and plan from a snapshot in an empty environment without Java.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("quota_ops", "spark_jobs")
UV = Path(sys.executable).with_name("uv")
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
STORED = (
    {"cluster_id": CLUSTER_ID, "filter": None, "rows": 1},
    {"entity": {"user": "bob"}, "key": "producer_byte_rate", "value": 1048576.0},
)
"""A snapshot, line by line."""


def main() -> None:
    """Build into the folder named on the command line; the first fault ends it with 1."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    _build(folder)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = _check_metadata(wheel)
    _check_names(wheel)
    with tempfile.TemporaryDirectory() as place:
        _check_rebuild(wheel, Path(place))
        plan = _plan(wheel, Path(place))
    for path in (wheel, archive):
        _print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    _print(f"quota-ops {version}, installed without Java: {plan}")


def _build(folder: Path, *only: str) -> None:
    """Build in this environment, which has the pinned build backend."""
    here = ("--no-build-isolation", "--python", sys.executable)
    _run(UV, "build", "--quiet", *only, *here, "--out-dir", folder, ROOT)


def _check_metadata(wheel: Path) -> str:
    """Return the version, which the changelog must have as its newest."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(packed.read(name))
    for field in ("Name", "Version", "Summary", "License-Expression", "Requires-Python"):
        if not metadata[field]:
            _fail(f"{wheel.name} has no {field}")
    version = str(metadata["Version"])
    headings = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    if not any(one.startswith((f"{version} ", f"{version}\n")) for one in headings):
        _fail(f"CHANGELOG.md has no section for version {version}: write one")
    return version


def _check_names(wheel: Path) -> None:
    """Compare what is in the wheel with the files of the packages."""
    with zipfile.ZipFile(wheel) as packed:
        found = {one for one in packed.namelist() if not one.split("/")[0].endswith(".dist-info")}
    expected = set(_package_files())
    for what, names in (("lacks", expected - found), ("also has", found - expected)):
        if names:
            _fail(f"{wheel.name} {what} {', '.join(sorted(names))}")


def _package_files() -> Iterator[str]:
    for package in PACKAGES:
        for folder, _, names in os.walk(ROOT / package, followlinks=True):
            if not folder.endswith("__pycache__"):
                yield from (Path(folder, name).relative_to(ROOT).as_posix() for name in names)


def _check_rebuild(wheel: Path, place: Path) -> None:
    """Build the wheel from the checkout, which must give the bytes that the archive gave."""
    _build(place, "--wheel")
    if (place / wheel.name).read_bytes() != wheel.read_bytes():
        _fail(f"{wheel.name}, built from the source archive, differs from one of the checkout")


def _plan(wheel: Path, place: Path) -> str:
    """Install the wheel and plan from a snapshot; returns the heading of the plan."""
    environment, quotas, snapshot = place / "environment", place / "quotas", place / "actual.jsonl"
    _run(UV, "venv", "--quiet", "--python", sys.executable, environment)
    lock = ROOT / "requirements.lock"
    into = ("--python", environment / "bin" / "python")
    _run(UV, "pip", "install", "--quiet", *into, "--constraints", lock, wheel)
    snapshot.write_text("".join(f"{json.dumps(line)}\n" for line in STORED), "utf-8")
    command = environment / "bin" / "quota-ops"
    _run(command, "init", quotas, "--cluster", "demo", "--cluster-id", CLUSTER_ID, home=place)
    plan = ("plan", "demo", "--actual", snapshot, "--desired-state", quotas / "desired_state")
    return _run(command, *plan, home=place).splitlines()[0]


def _run(*command: str | Path, home: Path | None = None) -> str:
    """Run a command; with a home of its own it has no other program, and so no Java."""
    alone = {"HOME": str(home), "PATH": str(Path(command[0]).parent)}
    done = subprocess.run(
        command, env=alone if home else None, capture_output=True, text=True, check=False
    )
    if done.returncode:
        _fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _fail(why: str) -> None:
    sys.exit(f"build_dist: {why}")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
