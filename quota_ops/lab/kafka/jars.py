"""The pinned jars of each Kafka version; a folder in `versions` adds a version."""

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from platformdirs import user_cache_path

from quota_ops.jvm.pinned_jars import PinnedJars, Progress, read_checksums, show_nothing
from quota_ops.model.errors import InvalidInput, QuotaOpsError

DEFAULT_VERSION = "4.3.1"
_VERSIONS = files("quota_ops.lab.kafka") / "versions"


class Pins(PinnedJars, frozen=True, kw_only=True):
    """A Kafka version's jars.

    `log_settings` is on the broker's class path under its own name, by which the version's
    logging library finds it.
    """

    log_settings: Traversable


def pinned_versions() -> tuple[str, ...]:
    """Return the Kafka versions with pins, the oldest first."""
    names = (each.name for each in _VERSIONS.iterdir() if each.is_dir())
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


def pins_of(version: str) -> Pins:
    """Return the pins of a Kafka version. Raises InvalidInput if it has none."""
    if version not in pinned_versions():
        known = ", ".join(pinned_versions())
        raise InvalidInput(
            f"There is no sandbox for Apache Kafka {version}.", f"Choose one of {known}."
        )
    folder = _VERSIONS / version
    (log_settings,) = (each for each in folder.iterdir() if each.name.endswith(".properties"))
    return Pins(
        title=f"Apache Kafka {version}",
        ivy=folder / "ivy.xml",
        checksums=read_checksums(folder),
        log_settings=log_settings,
    )


def fetch_jars(version: str = DEFAULT_VERSION, progress: Progress = show_nothing) -> Path:
    """Return the folder of a Kafka version's pinned jars; each has the pinned SHA-256.

    The folder is in the user's cache, or in QUOTA_OPS_CACHE. Missing or damaged jars are fetched
    once, even if several processes call this at the same time. Raises InvalidInput for a version
    without pins or a cache that cannot be written, MissingTool when fetching fails.
    """
    pins = pins_of(version)
    folder = _cache() / "kafka" / version
    try:
        if pins.install(folder, progress):
            # The JVM uses no archive of older jars, even if their content is the same.
            shutil.rmtree(archive_folder(version), ignore_errors=True)
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
