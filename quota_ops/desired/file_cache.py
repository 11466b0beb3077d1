"""The cache of checked files: a file that has not changed is not parsed again.

The key of an entry is the file's path below the cluster's folder, its bytes and the code that read
it, so no entry has to be invalidated. An entry has only what that one file sets; checks that
compare files or need cluster.yaml run every time.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from platform import python_version
from stat import S_ISDIR, S_ISREG
from tempfile import mkstemp
from types import GenericAlias
from typing import Any, Self, get_type_hints

import msgspec
import yaml

import quota_ops
from quota_ops.desired.groups import Group
from quota_ops.desired.quota_lines import read_quota_lines
from quota_ops.desired.quotas_file import Quota, QuotasFile, read_quotas_file
from quota_ops.desired.yaml.checkout import Folder
from quota_ops.desired.yaml.nodes import SizeBudget, compose, read_bounded
from quota_ops.desired.yaml.problems import Problems
from quota_ops.desired.yaml.source import Source

MOST_BYTES = 256 * 2**20
"""The size of all entries, about two million quotas; beyond it, all are removed."""

_DIGEST = sha256().digest_size
_OTHERS_MAY_WRITE = 0o022
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


_CACHED = tuple(get_type_hints(Quota).values())[2:]
"""The types of the fields of a quota after its source and its owner."""
_QUOTA: Any = GenericAlias(tuple, _CACHED)
_ENTRY = tuple[int, str | None, tuple[_QUOTA, ...], tuple[Group, ...]]
"""A file without problems: how many YAML values it has, its owner, the fields of its quotas, and
its groups."""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(_ENTRY)


@dataclass(frozen=True, slots=True)
class FileCache:
    """A private folder of entries; an entry with any defect is ignored."""

    folder: Path
    code: bytes

    @classmethod
    def of_user(cls) -> Self | None:
        """Return the folder of the user; None if it cannot be private to the user."""
        folder = cls.folder_of_user()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
            return (
                cls(folder, _hash_code()) if S_ISDIR(found.st_mode) and _is_private(found) else None
            )
        except OSError:
            return None

    @staticmethod
    def folder_of_user() -> Path:
        """Return the path of the user's folder, which need not exist."""
        from platformdirs import user_cache_path  # noqa: PLC0415 - not for those that parse all

        return user_cache_path("quota-ops") / "checked"

    def find(self, source: Source, most_values: int) -> tuple[QuotasFile, int] | None:
        """Return the quotas of a file and its number of values; None if unknown or too many."""
        path = self._path(source)
        try:
            values, owner, quotas, groups = _DECODER.decode(_read_whole(path))
        except (OSError, ValueError):  # of which msgspec's errors are
            return None
        if values > most_values:
            return None  # parsing it again reports the problem
        found = tuple([Quota(source, owner, *fields) for fields in quotas])
        return QuotasFile(source, owner, found, groups), values

    def keep(self, file: QuotasFile, values: int) -> None:
        """Remember a file that was read without a problem."""
        quotas = [quota[2:] for quota in file.quotas]
        with suppress(OSError, ValueError):
            content = _ENCODER.encode((values, file.owner, quotas, file.groups))
            _write_whole(self._path(file.source), content)

    def trim(self, most_bytes: int = MOST_BYTES) -> None:
        """Remove all entries if they are too large together."""
        with suppress(OSError), os.scandir(self.folder) as found:
            entries = list(found)
            if sum(entry.stat(follow_symlinks=False).st_size for entry in entries) > most_bytes:
                for entry in entries:
                    Path(entry.path).unlink(missing_ok=True)

    def _path(self, source: Source) -> Path:
        name = sha256(source.name.encode()).digest()
        return self.folder / sha256(self.code + name + source.content).hexdigest()


def read_files(
    folder: Folder, names: Iterable[str], problems: Problems, file_cache: FileCache | None
) -> Iterator[QuotasFile]:
    """Read the quotas files, up to the one that exceeds what a cluster's files may contain."""
    room = SizeBudget()
    for name in names:
        source = read_bounded(folder, name, problems, room)
        file = None if source is None else _read_file(source, room, file_cache)
        if file is not None:
            yield file
        if room.is_spent:
            break
    if file_cache is not None:
        file_cache.trim()


def _read_file(source: Source, room: SizeBudget, file_cache: FileCache | None) -> QuotasFile | None:
    found = file_cache.find(source, room.values) if file_cache else None
    if found is not None:
        room.values -= found[1]
        return found[0]
    values, problems = room.values, len(source.problems)
    file = read_quota_lines(source, room)
    if file is None:
        root = compose(source, room)
        file = None if root is None else read_quotas_file(source, root)
    if file is not None and file_cache is not None and len(source.problems) == problems:
        file_cache.keep(file, values - room.values)
    return file


def _read_whole(path: Path) -> bytes:
    """Read an entry. Raises OSError or ValueError if it is damaged or not private."""
    with os.fdopen(os.open(path, _READ), "rb") as file:
        found = os.fstat(file.fileno())
        digest, content = file.read(_DIGEST), file.read()
    if not (S_ISREG(found.st_mode) and _is_private(found)):
        raise ValueError("another user may have written it")
    if _seal(path, content) != digest:
        raise ValueError("it is damaged, or of another file")
    return content


def _write_whole(path: Path, content: bytes) -> None:
    opened, name = mkstemp(dir=path.parent)  # which no other user may read
    try:
        with os.fdopen(opened, "wb") as file:
            file.write(_seal(path, content) + content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _seal(path: Path, content: bytes) -> bytes:
    return sha256(path.name.encode() + content).digest()


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE


def _hash_code() -> bytes:
    """Hash all code that turns YAML into quotas, and the versions of Python and the libraries."""
    by = f"{python_version()} {yaml.__version__} {yaml.__with_libyaml__} {msgspec.__version__}"
    hashed = sha256(by.encode())
    for path in _sources():
        hashed.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return hashed.digest()


def _sources() -> Iterable[Path]:
    package = Path(quota_ops.__file__).parent
    rooms = (package / name for name in ("desired", "findings", "model"))
    return sorted(path for room in rooms for path in room.rglob("*.py"))
