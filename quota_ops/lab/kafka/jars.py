"""The pinned jars of each Kafka version; a folder in `versions` adds a version."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

from quota_ops.lab.kafka.process import lock_file
from quota_ops.model.errors import InvalidInput, MissingTool, QuotaOpsError
from quota_ops.sql.java import QUICK_START, find_java

DEFAULT_VERSION = "4.3.1"
_VERSIONS = files("quota_ops.lab.kafka") / "versions"
IVY_SETTINGS = _VERSIONS / "ivysettings.xml"


@dataclass(frozen=True, kw_only=True)
class Pins:
    """A Kafka version's jars: the Ivy file that lists them, and the SHA-256 of each by file name.

    `log_settings` is on the broker's class path under its own name, by which the version's
    logging library finds it.
    """

    version: str
    ivy: Traversable
    checksums: Mapping[str, str]
    log_settings: Traversable


def pinned_versions() -> tuple[str, ...]:
    """Return the Kafka versions with pins, the oldest first."""
    names = (each.name for each in _VERSIONS.iterdir() if each.is_dir())
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


def pins_of(version: str) -> Pins:
    """Return the pins of a Kafka version; raises InvalidInput if it has none."""
    if version not in pinned_versions():
        known = ", ".join(pinned_versions())
        raise InvalidInput(
            f"There is no sandbox for Apache Kafka {version}.", f"Choose one of {known}."
        )
    folder = _VERSIONS / version
    pairs = (line.split() for line in (folder / "sha256sums").read_text().splitlines())
    (log_settings,) = (each for each in folder.iterdir() if each.name.endswith(".properties"))
    return Pins(
        version=version,
        ivy=folder / "ivy.xml",
        checksums={name: digest for digest, name in pairs},
        log_settings=log_settings,
    )


_FETCH_SECONDS = 900

Progress = Callable[[int, int], None]
"""Called with the number of fetched jars and of all jars."""


def fetch_jars(
    version: str = DEFAULT_VERSION, progress: Progress = lambda _done, _all: None
) -> Path:
    """Return the folder of a Kafka version's pinned jars; each has the pinned SHA-256.

    The folder is in the user's cache, or in QUOTA_OPS_CACHE. Missing or damaged jars are fetched
    once, even if several processes call this at the same time. Raises InvalidInput for a version
    without pins or a cache that cannot be written, MissingTool when fetching fails.
    """
    pins = pins_of(version)
    folder = _cache() / "kafka" / version
    if _wrong_jars(folder, pins):
        try:
            with lock_file(folder.with_name(".lock")):
                if _wrong_jars(folder, pins):  # another process may have fetched them
                    _replace(folder, pins, progress)
        except OSError as refused:
            raise InvalidInput(
                f"Kafka's jars cannot be stored in {folder}: {refused.strerror}.",
                "Set QUOTA_OPS_CACHE to a writable folder.",
            ) from refused
    return folder


def _cache() -> Path:
    chosen = os.environ.get("QUOTA_OPS_CACHE")
    return Path(chosen) if chosen else user_cache_path("quota-ops")


def archive_folder(version: str) -> Path:
    """Return the folder of the class archives of a Kafka version's programs."""
    return _cache() / "class-archives" / version


def _wrong_jars(folder: Path, pins: Pins) -> tuple[str, ...]:
    return tuple(
        name for name, digest in pins.checksums.items() if _sha256(folder / name) != digest
    )


def _sha256(file: Path) -> str | None:
    if not file.is_file():
        return None
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _replace(folder: Path, pins: Pins, progress: Progress) -> None:
    """Fetch into a scratch folder and swap, so that a reader sees all old jars or all new ones."""
    scratch = folder.with_name(f".{pins.version}-fetching")
    shutil.rmtree(scratch, ignore_errors=True)  # from a killed call
    scratch.mkdir()
    try:
        _run_ivy(scratch, pins, progress)
        if wrong := _wrong_jars(scratch / "jars", pins):
            raise MissingTool(
                f"{len(wrong)} jars of Apache Kafka {pins.version} do not have the pinned SHA-256: "
                f"{', '.join(wrong)}.",
                "A proxy or mirror may have changed them. No jar was stored.",
            )
        if folder.exists():
            folder.rename(scratch / "replaced")
        (scratch / "jars").rename(folder)
        # The JVM uses no archive of older jars, even if their content is the same.
        shutil.rmtree(archive_folder(pins.version), ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_ivy(scratch: Path, pins: Pins, progress: Progress) -> None:
    java, ivy_jar, log = find_java(), find_ivy(), scratch / "ivy.log"
    (scratch / "ivy.xml").write_bytes(pins.ivy.read_bytes())
    (scratch / "ivysettings.xml").write_bytes(IVY_SETTINGS.read_bytes())
    command = [java, *QUICK_START, f"-Divy.default.ivy.user.dir={scratch}", "-jar", str(ivy_jar)]
    command += ["-warn", "-settings", "ivysettings.xml", "-cache", "cache", "-ivy", "ivy.xml"]
    command += ["-types", "jar", "-retrieve", "jars/[artifact]-[revision].[ext]"]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=scratch, stdout=out, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + _FETCH_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                fetched = sum(1 for _ in scratch.glob("cache/**/*.jar"))
                progress(min(fetched, len(pins.checksums) - 1), len(pins.checksums))
                time.sleep(0.2)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").strip().splitlines()[-12:])
        raise MissingTool(
            f"Apache Kafka {pins.version} could not be fetched. The output of Ivy:\n{tail}",
            "The jars come from Maven Central. Check the network, then run the command again.",
        )
    progress(len(pins.checksums), len(pins.checksums))


def find_ivy() -> Path:
    """Return the jar of the Ivy inside pyspark; raises MissingTool without it."""
    pyspark = find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    found = [jar for folder in folders or () for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not found:
        raise MissingTool(
            "Fetching Kafka needs Ivy, which is part of pyspark, and pyspark is not installed.",
            "pip install 'quota-ops[spark]'",
        )
    return found[0]


def build_progress(version: str) -> Progress:
    """Return a Progress that reports fetching on stderr, with counts on a terminal."""
    is_shown = False

    def show(done: int, total: int) -> None:
        nonlocal is_shown
        if not is_shown:
            is_shown = True
            sys.stderr.write(f"fetching Apache Kafka {version}, once: {total} jars, 45 MB ...\n")
        if sys.stderr.isatty():
            end = "\n" if done == total else ""
            sys.stderr.write(f"\r{done} of {total} jars{end}")

    return show


def main(versions: Sequence[str]) -> int:
    """Fetch the jars of these versions, or of the default one."""
    try:
        for version in versions or (DEFAULT_VERSION,):
            fetch_jars(version, build_progress(version))
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
