"""Jars from Maven Central, each with a pinned SHA-256, fetched by the Ivy inside pyspark."""

import fcntl
import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from quota_ops.jvm.java import QUICK_START, find_java
from quota_ops.model.errors import MissingTool

_FETCH_SECONDS = 900
Progress = Callable[[int, int], None]
"""Called with the number of fetched jars and of all jars."""


def show_nothing(_done: int, _all: int) -> None:
    """Report no progress."""


class PinnedJars(Struct, frozen=True, kw_only=True):
    """The jars of a program: the Ivy file that lists them, and the SHA-256 of each by file name."""

    title: str
    """The name and version of the program, for messages."""
    ivy: Traversable
    checksums: Mapping[str, str]

    def find_wrong(self, folder: Path) -> tuple[str, ...]:
        """Return the names of the jars that are not in a folder, or have another SHA-256."""
        return tuple(
            name for name, digest in self.checksums.items() if _sha256(folder / name) != digest
        )

    def install(self, folder: Path, progress: Progress = show_nothing) -> bool:
        """Fetch the jars unless they are in a folder; return whether they were fetched.

        A reader of the folder sees all old jars or all new ones. Raises OSError; MissingTool
        without Java or pyspark, if fetching fails, or for another SHA-256.
        """
        if not self.find_wrong(folder):
            return False
        with lock_file(folder.with_name(".lock")):
            if not self.find_wrong(folder):  # another process has fetched them
                return False
            for killed in folder.parent.glob(".fetching-*"):
                shutil.rmtree(killed)
            with TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as name:
                scratch = Path(name)
                self._run_ivy(scratch, progress)
                if wrong := self.find_wrong(scratch / "jars"):
                    raise MissingTool(
                        f"{len(wrong)} jars of {self.title} do not have the pinned SHA-256: "
                        f"{', '.join(wrong)}.",
                        "A proxy or mirror may have changed them. No jar was stored.",
                    )
                if folder.exists():
                    folder.rename(scratch / "replaced")
                (scratch / "jars").rename(folder)
        return True

    def _run_ivy(self, scratch: Path, progress: Progress) -> None:
        java, ivy_jar, log = find_java(), find_ivy(), scratch / "ivy.log"
        settings = files("quota_ops.jvm") / "ivysettings.xml"
        (scratch / "ivy.xml").write_bytes(self.ivy.read_bytes())
        (scratch / "ivysettings.xml").write_bytes(settings.read_bytes())
        command = [java, *QUICK_START, f"-Divy.default.ivy.user.dir={scratch}", "-jar", ivy_jar]
        command += ["-warn", "-settings", "ivysettings.xml", "-cache", "cache", "-ivy", "ivy.xml"]
        command += ["-types", "jar", "-retrieve", "jars/[artifact]-[revision].[ext]"]
        with log.open("wb") as out:
            process = subprocess.Popen(command, cwd=scratch, stdout=out, stderr=subprocess.STDOUT)
            try:
                deadline = time.monotonic() + _FETCH_SECONDS
                while process.poll() is None and time.monotonic() < deadline:
                    fetched = sum(1 for _ in scratch.glob("cache/**/*.jar"))
                    progress(min(fetched, len(self.checksums) - 1), len(self.checksums))
                    time.sleep(0.2)
            finally:
                process.kill()
                process.wait()
        if process.returncode != 0:
            tail = "\n".join(log.read_text(errors="replace").strip().splitlines()[-12:])
            raise MissingTool(
                f"{self.title} could not be fetched. The output of Ivy:\n{tail}",
                "The jars come from Maven Central. Check the network, then run the command again.",
            )
        progress(len(self.checksums), len(self.checksums))


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """Lock a file, and create it if missing; the end of the process also releases the lock."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_checksums(folder: Traversable) -> dict[str, str]:
    """Return the SHA-256 of each jar by file name, from the file `sha256sums` of a folder."""
    pairs = (line.split() for line in (folder / "sha256sums").read_text().splitlines())
    return {name: digest for digest, name in pairs}


def _sha256(file: Path) -> str | None:
    if not file.is_file():
        return None
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def find_ivy() -> str:
    """Return the jar of the Ivy inside pyspark. Raises MissingTool without it."""
    pyspark = find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    found = [jar for folder in folders or () for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not found:
        raise MissingTool(
            "Fetching jars needs Ivy, which is part of pyspark, and pyspark is not installed.",
            "Install quota-ops with the extra [spark].",
        )
    return str(found[0])
