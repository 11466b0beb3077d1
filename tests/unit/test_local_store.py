"""The folders of this machine as a store: complete files or none, and errors with a remedy."""

import errno
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.ledger import holds, ledger
from quota_ops.store.places.local import remedy
from quota_ops.store.places.run_store import RunStore, find_run_store, open_place
from quota_ops.store.run.folder import RunFolder

FILE_LIMIT = 4096


def test_a_place_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place is a path from the root, the current folder or home, with its steps up resolved."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "below"))
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "deep")
    place = open_place("below/a")
    place.replace(b"content")

    assert (tmp_path / "below" / "a").read_bytes() == b"content"
    for path in (tmp_path / "below" / "a", "./below//a/.", "~/a", "real/../below/a"):
        assert open_place(path) == place
    assert open_place("link/../a") == open_place("real/a")
    assert str(open_place("~no such user/a")) == f"{tmp_path}/~no such user/a"


@pytest.mark.parametrize("how", ["replace", "create"])
def test_a_full_disk_leaves_nothing_half_written(how: str, tmp_path: Path) -> None:
    """The old file stays, nothing half-written remains, and the error gives a remedy."""
    old, new = tmp_path / "old", tmp_path / "new"
    open_place(old).replace(b"old")
    place = old if how == "replace" else new
    script = f"""
import resource, signal, sys
from quota_ops.model.errors import InvalidInput
from quota_ops.store.places.run_store import open_place
open_place({str(tmp_path / "warm")!r}).replace(b"")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_LIMIT}, {FILE_LIMIT}))
try:
    open_place({str(place)!r}).{how}(bytes({2 * FILE_LIMIT}))
except InvalidInput as error:
    sys.exit(str(error))
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] != FILE_LIMIT

    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert ended.stderr == (
        f"{place} cannot be written: File too large\n"
        "  Free some space there (quota-ops prune --keep 1h removes the runs before the last "
        "hour), or move the run store.\n"
    )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "old": b"old",
        "warm": b"",
    }


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """A folder in place of a file is an error with the place and a remedy."""
    (tmp_path / "file").write_bytes(b"")
    place = tmp_path / "file" / "below"

    with pytest.raises(InvalidInput) as refused:
        open_place(place).replace(b"content")

    assert str(refused.value) == (
        f"{place} cannot be written: File exists\n"
        f"  {place.parent} is in the way: move it elsewhere, or correct the path."
    )


def test_a_store_that_is_moved_does_not_begin_again(tmp_path: Path) -> None:
    """A run that writes while its run store is moved stops, and leaves nothing in the old place."""
    store = RunStore(open_place(tmp_path / "old"))
    run = RunFolder.start(store.new_run("demo"), cluster="demo", commit=None)
    (tmp_path / "old").rename(tmp_path / "new")

    with pytest.raises(InvalidInput) as refused:
        run.write_json("applied.json", {})

    assert str(refused.value) == (
        f"{run.place}/applied.json cannot be written: the run store {tmp_path}/old was moved or "
        "deleted meanwhile\n  Nothing was created there. Set --run-store or QUOTA_OPS_RUN_STORE to "
        "its new place; the next run there settles what this one wrote."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    again = find_run_store(str(tmp_path / "old"))  # a command that names it begins a new store
    RunFolder.start(again.new_run("demo"), cluster="demo", commit=None)
    assert (tmp_path / "old").is_dir()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "Free some space there (quota-ops prune --keep 1h removes the runs before"),
        (errno.EACCES, "Give the user of this process permission to read and write there."),
        (errno.EROFS, "Make its file system writable again, or move the run store."),
        (errno.EISDIR, "/store/x is in the way: move it elsewhere, or correct the path."),
        (errno.EPERM, "A run store needs hard links and fsync: move it to a file system with"),
        (errno.EIO, "None"),
    ],
)
def test_what_to_do_about_a_file(number: int, said: str) -> None:
    """The remedy fits the cause, and is never another run store, which would have no ledger."""
    error = OSError(number, os.strerror(number), "/store/x.part", None, "/store/x")

    assert str(remedy(error)).startswith(said)


MOVED = """\
  The file {old} states where the run store is: moved to /new
  Set --run-store or QUOTA_OPS_RUN_STORE to the new place."""


@pytest.mark.parametrize("text", ["moved to /new\n", "password=secret", "moved to\0", "\xff", ""])
def test_the_note_of_a_moved_store_is_shown(text: str, tmp_path: Path) -> None:
    """Every error in the place of a moved store shows the note in it, and no other text."""
    old = tmp_path / "old"
    old.write_text(text, "latin-1")
    store = RunStore(open_place(old))
    expected = MOVED.format(old=old)
    if not text.endswith("/new\n"):
        expected = f"  {old} is in the way: move it elsewhere, or correct the path."

    for read in (
        store.prepare,
        partial(store.new_run, "demo"),
        store.runs,
        store.root.list,
        store.root.walk,
        partial(holds.read, store.of_cluster("id").holds),
        partial(ledger.read, store.of_cluster("id")),
        partial((store.root / "file").replace, b""),
    ):
        with pytest.raises(InvalidInput) as error:
            read()
        assert str(error.value).partition("\n")[2] == expected
