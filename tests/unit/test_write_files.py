"""Files of desired state are written whole, and all of them or none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit

import pytest

from quota_ops.desired.export.disk import write_files
from quota_ops.model.errors import InvalidInput


@contextmanager
def small_disk() -> Iterator[None]:
    """No file that this process writes meanwhile may have more than 100 bytes."""
    soft, hard = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        setrlimit(RLIMIT_FSIZE, (soft, hard))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, hidden ones included."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    """The second file does not fit: neither is it cut off, nor is the first one replaced."""
    before = {"a.yaml": b"one", "b.yaml": b"two"}
    write_files(tmp_path, before)

    with small_disk(), pytest.raises(InvalidInput) as refused:
        write_files(tmp_path, {"a.yaml": b"three", "b.yaml": b"4" * 200}, replaced=before)

    assert str(refused.value) == (
        f"{tmp_path / 'b.yaml'} cannot be written: File too large\n"
        "  No file was changed. Try again when it can be written."
    )
    assert contents(tmp_path) == before


def test_a_file_that_is_not_written_whole_is_not_there(tmp_path: Path) -> None:
    """A new file that does not fit is removed again, with those that were created before it."""
    with small_disk(), pytest.raises(InvalidInput):
        write_files(tmp_path, {"a.yaml": b"one", "b.yaml": b"2" * 200})

    assert contents(tmp_path) == {}


def test_only_the_named_files_are_replaced(tmp_path: Path) -> None:
    """Another file that exists, and one to replace that is missing, stop all of it."""
    write_files(tmp_path, {"a.yaml": b"one"})
    (tmp_path / "a.yaml").chmod(0o640)

    with pytest.raises(InvalidInput, match=r"a\.yaml already exists"):
        write_files(tmp_path, {"b.yaml": b"two", "a.yaml": b"three"})
    with pytest.raises(InvalidInput, match=r"b\.yaml cannot be written: No such file"):
        write_files(tmp_path, {"a.yaml": b"x", "b.yaml": b"x"}, replaced=("a.yaml", "b.yaml"))
    assert contents(tmp_path) == {"a.yaml": b"one"}

    write_files(tmp_path, {"a.yaml": b"three", "b.yaml": b"four"}, replaced=("a.yaml",))
    assert contents(tmp_path) == {"a.yaml": b"three", "b.yaml": b"four"}
    assert (tmp_path / "a.yaml").stat().st_mode & 0o777 == 0o640
