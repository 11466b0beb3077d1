"""Archives of loaded Java classes, which reduce the CPU time of a JVM's start."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

# The JVM warns of an archive that it cannot use, and then starts without it.
_QUIET = "-Xlog:cds*=off"


def record_classes(file: Path) -> tuple[str, ...]:
    """Return the JVM options that write an archive to `file` when the program exits normally."""
    return (_QUIET, f"-XX:ArchiveClassesAtExit={file}")


class ClassArchive(Struct, frozen=True, kw_only=True):
    """The archive of one program, Java and class path, in a folder of archives.

    Its file name contains the SHA-256 of its content, because a damaged archive crashes the JVM.
    """

    folder: Path
    program: str
    java: str
    class_path: Sequence[Path]

    def options(self) -> tuple[str, ...]:
        """Return the JVM options to use the archive; empty if it is missing or damaged."""
        for file in self._find():
            if file.stem.endswith(f"-{_digest(file)}"):
                return (_QUIET, f"-XX:SharedArchiveFile={file}")
        return ()

    def keep(self, recorded: Path) -> None:
        """Move a recorded archive into the folder, and remove the program's earlier ones."""
        file = self.folder / f"{self.program}-{self._key()}-{_digest(recorded)}.jsa"
        recorded.replace(file)
        for other in self.folder.glob(f"{self.program}-*.jsa"):
            if other != file:
                other.unlink(missing_ok=True)

    @contextmanager
    def recording_folder(self) -> Iterator[Path]:
        """Yield a folder for new archives, from which `keep` can move them, and then remove it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # In the same file system, so that moving an archive there is atomic.
        with TemporaryDirectory(dir=self.folder, prefix=".recording-") as scratch:
            yield Path(scratch)

    def _find(self) -> list[Path]:
        return sorted(self.folder.glob(f"{self.program}-{self._key()}-*.jsa"))

    def _key(self) -> str:
        """Return a hash of the Java build, and of the path and size of Java and each jar."""
        java = Path(self.java).resolve()
        with suppress(OSError):
            build = (java.parents[1] / "release").read_bytes()
            files = [(str(file), file.stat().st_size) for file in (java, *self.class_path)]
            return hashlib.sha256(repr((build, files)).encode()).hexdigest()[:16]
        return "none"


def _digest(file: Path) -> str:
    with suppress(OSError), file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
    return ""
