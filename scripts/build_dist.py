"""Build the source archive and from it the wheel, into a folder, and check them.

Version, changelog and tag must agree. The wheel must have every file of the packages and nothing
else, and both must be byte for byte what a build in another folder gives. Installed by `uv tool
install`, the wheel must plan from a snapshot without Java.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
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
    version = _check_version()
    shutil.rmtree(folder, ignore_errors=True)
    _build(ROOT, folder)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    _check_metadata(wheel)
    _check_names(wheel)
    with tempfile.TemporaryDirectory() as place:
        _check_rebuild(wheel, archive, Path(place))
        plan = _plan(wheel, Path(place))
    for path in (wheel, archive):
        _print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}")
    _print(f"quota-ops {version}, installed without Java: {plan}")


def _build(source: Path, folder: Path, *only: str) -> None:
    """Build in this environment, which has the pinned build backend."""
    here = ("--no-build-isolation", "--python", sys.executable)
    _run(UV, "build", "--quiet", *only, *here, "--out-dir", folder, source)


def _check_version() -> str:
    """Return the version, which the newest section of the changelog and a tag must have too."""
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])
    heading = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1].partition("\n")[0]
    if heading.partition(" ")[0] != version:
        _fail(f"CHANGELOG.md begins with {heading}: write one for {version}")
    tags = _run("git", "-C", ROOT, "tag", "--points-at", "HEAD", "v*").split()
    if wrong := set(tags) - {f"v{version}"}:
        _fail(f"this commit has the tag {min(wrong)}, but its version is {version}")
    if tags and "not released" in heading:
        _fail(f"this commit has the tag {tags[0]}, but CHANGELOG.md calls it not released")
    return version


def _check_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(packed.read(name))
    for field in ("Name", "Version", "Summary", "License-Expression", "Requires-Python"):
        if not metadata[field]:
            _fail(f"{wheel.name} has no {field}")


def _check_names(wheel: Path) -> None:
    """Compare what is in the wheel with the files of the packages."""
    with zipfile.ZipFile(wheel) as packed:
        found = {
            name for name in packed.namelist() if not name.split("/")[0].endswith(".dist-info")
        }
    expected = set(_package_files())
    for what, names in (("lacks", expected - found), ("also has", found - expected)):
        if names:
            _fail(f"{wheel.name} {what} {', '.join(sorted(names))}")


def _package_files() -> Iterator[str]:
    for package in PACKAGES:
        for folder, _, names in os.walk(ROOT / package, followlinks=True):
            if not folder.endswith("__pycache__"):
                yield from (Path(folder, name).relative_to(ROOT).as_posix() for name in names)


def _check_rebuild(wheel: Path, archive: Path, place: Path) -> None:
    """Build both from a copy in another folder, as another user would, with the same bytes.

    The copy has other times and file modes. The wheel was built from the archive before.
    """
    listed = _run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    os.umask(0o077)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (place / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place / "copy" / name, follow_symlinks=False)
            if os.access(ROOT / name, os.X_OK):
                (place / "copy" / name).chmod(0o700)
    _build(place / "copy", place, "--wheel", "--sdist")
    for path in (wheel, archive):
        if (place / path.name).read_bytes() != path.read_bytes():
            _fail(f"a build of {path.name} in another folder gives other bytes")


def _plan(wheel: Path, place: Path) -> str:
    """Install the wheel as a tool and plan from a snapshot; returns the heading of the plan."""
    quotas, snapshot = place / "quotas", place / "actual.jsonl"
    lock = ROOT / "requirements.lock"
    into = ("--python", sys.executable, "--constraints", lock)
    folders = {"UV_TOOL_DIR": str(place / "tools"), "UV_TOOL_BIN_DIR": str(place / "bin")}
    _run(UV, "tool", "install", "--quiet", *into, wheel, environment=dict(os.environ) | folders)
    snapshot.write_text("".join(f"{json.dumps(line)}\n" for line in STORED), "utf-8")
    command = place / "bin" / "quota-ops"
    alone = {"HOME": str(place), "PATH": str(command.parent)}  # no other program, and so no Java
    cluster = ("--cluster", "demo", "--cluster-id", CLUSTER_ID)
    _run(command, "init", quotas, *cluster, environment=alone)
    plan = ("plan", "demo", "--actual", snapshot, "--desired-state", quotas / "desired_state")
    return _run(command, *plan, environment=alone).splitlines()[0]


def _run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Run a command, by default with the environment of this process; return its output."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        _fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def _fail(why: str) -> None:
    sys.exit(f"build_dist: {why}")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
