"""Bytes in a place: whole or not at all."""

import errno
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store import local

FILE_LIMIT = 4096


def test_a_place_holds_what_was_written_last(tmp_path: Path) -> None:
    """Folders are made on the way, and the last write is what is read."""
    place = tmp_path / "a" / "b" / "c.json"

    local.write(place, b"first")
    local.write(place, b"second")

    assert place.read_bytes() == b"second"
    assert [path.name for path in place.parent.iterdir()] == ["c.json"]


def test_a_place_is_created_once(tmp_path: Path) -> None:
    """Who comes second changes nothing, and is told."""
    place = tmp_path / "1.parquet"

    assert (local.create(place, b"first"), local.create(place, b"second")) == (True, False)
    assert place.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["1.parquet"]


def test_of_many_creators_one_wins(tmp_path: Path) -> None:
    """However many come at once, one creates the place, and it holds that one's bytes."""
    place = tmp_path / "1.parquet"
    contents = [bytes([number]) * 50_000 for number in range(16)]

    with ThreadPoolExecutor(16) as writers:
        won = list(writers.map(lambda content: local.create(place, content), contents))

    assert won.count(True) == 1
    assert place.read_bytes() == contents[won.index(True)]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_place_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place is a path, from the root or from here."""
    monkeypatch.chdir(tmp_path)
    local.write(Path("below/a"), b"content")

    assert (tmp_path / "below" / "a").read_bytes() == b"content"


@pytest.mark.parametrize("how", ["write", "create"])
def test_a_full_disk_leaves_nothing_half_written(how: str, tmp_path: Path) -> None:
    """What was there stays, nothing half-written is beside it, and the error says what to do."""
    old, new = tmp_path / "old", tmp_path / "new"
    local.write(old, b"old")
    place = old if how == "write" else new
    script = f"""
import resource, signal, sys
from pathlib import Path
from quota_ops.model.errors import InvalidInput
from quota_ops.store import local
local.write(Path({str(tmp_path / "warm")!r}), b"")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_LIMIT}, {FILE_LIMIT}))
try:
    local.{how}(Path({str(place)!r}), bytes({2 * FILE_LIMIT}))
except InvalidInput as error:
    sys.exit(str(error))
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] != FILE_LIMIT

    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert ended.stderr == (
        f"{place} cannot be written: File too large\n"
        "  Free some space there (quota-ops prune removes old runs), or move the run store.\n"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "old": b"old",
        "warm": b"",
    }


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder where a file must be is an error with the place and what to do."""
    (tmp_path / "file").write_bytes(b"")
    place = tmp_path / "file" / "below"

    with pytest.raises(InvalidInput) as refused:
        local.write(place, b"content")

    assert str(refused.value) == (
        f"{place} cannot be written: File exists\n  {place.parent} is in the way: move it aside."
    )


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "Free some space there (quota-ops prune removes old runs), or move the run"),
        (errno.EACCES, "Let the user of this process read and write there."),
        (errno.EROFS, "Let the user of this process read and write there."),
        (errno.EISDIR, "/store/x is in the way: move it aside."),
        (errno.EPERM, "A run store needs hard links and fsync: move it to a file system that has"),
        (errno.EIO, "None"),
    ],
)
def test_what_to_do_about_a_file(number: int, said: str) -> None:
    """The remedy is of the cause, and never another run store, which would have no ledger."""
    error = OSError(number, os.strerror(number), "/store/x.part", None, "/store/x")

    assert str(local.remedy(error)).startswith(said)
