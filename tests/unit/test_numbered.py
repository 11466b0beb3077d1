"""Numbered files, on file systems that support create-once, or do not."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.ledger import ledger
from quota_ops.store.places import numbered_files
from quota_ops.store.places.numbered_files import create_next, file_name
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.folder import RunFolder
from tests.unit.test_ledger import add, row


def next_of(path: Path) -> int:
    """Create the file of the next number in a folder."""
    folder = open_place(path)
    return create_next(lambda number: folder / file_name(number, "json"), lambda _number: b"mine")


def test_the_first_free_number_is_created(tmp_path: Path) -> None:
    """Numbers count up from 1, and an existing number is left alone."""
    assert [next_of(tmp_path) for _ in range(3)] == [1, 2, 3]


def test_a_link_that_was_made_and_reported_as_there_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS may send a link twice and report the second result: the file is created, once."""
    make_link = Path.hardlink_to

    def make_and_report(place: Path, target: Any) -> None:
        make_link(place, target)
        raise FileExistsError(str(place))

    monkeypatch.setattr(Path, "hardlink_to", make_and_report)

    assert open_place(tmp_path / "1.json").create(b"mine")
    assert next_of(tmp_path / "holds") == 1
    assert [path.name for path in (tmp_path / "holds").iterdir()] == ["00000001.json"]


def test_a_store_without_hard_links_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on a file system without hard links fails at its first file, and leaves none."""

    def refuse(place: Path, target: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(place), None, str(target))

    path = RunStore(open_place(tmp_path / "store")).new_run("demo")
    monkeypatch.setattr(Path, "hardlink_to", refuse)

    with pytest.raises(InvalidInput, match="cannot be written: Operation not permitted"):
        RunFolder.start(path, cluster="demo", commit=None)
    assert not [one for one in tmp_path.rglob("*") if one.is_file()]


def test_a_folder_that_takes_no_file_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that reports every new file as existing is named, and not retried forever."""

    def report(place: Path, target: Any) -> None:
        del target
        raise FileExistsError(str(place))

    monkeypatch.setattr(Path, "hardlink_to", report)
    monkeypatch.setattr(numbered_files, "MOST_ATTEMPTS", 20)
    with pytest.raises(InvalidInput) as holds:
        next_of(tmp_path / "holds")
    with pytest.raises(InvalidInput) as changed:
        add(RunStore(open_place(tmp_path)).of_cluster("id"), row("user=a", 1.0))

    why = "accepted no new file in 20 attempts, from 00000001"
    assert holds.value.message == f"{tmp_path}/holds {why}.json on"
    assert changed.value.message == f"{tmp_path}/ledger/id {why}.parquet on"


def test_after_the_last_number_is_an_error(tmp_path: Path) -> None:
    """A ledger whose last number is used up is not written, and nothing waits forever."""
    folder = tmp_path / "ledger" / "id"
    add(RunStore(open_place(tmp_path)).of_cluster("id"), row("user=a", 1.0))
    (folder / "00000001.parquet").rename(folder / "99999999.parquet")

    with pytest.raises(InvalidInput, match=r"^99999999\.parquet is the largest number"):
        add(RunStore(open_place(tmp_path)).of_cluster("id"), row("user=b", 1.0))


def test_another_clusters_ledger_is_no_ledger_of_this_one(tmp_path: Path) -> None:
    """Rows of another cluster, copied into the wrong folder, are neither read nor changed."""
    add(RunStore(open_place(tmp_path)).of_cluster("id"), row("user=a", 1.0))
    (tmp_path / "ledger" / "id").rename(tmp_path / "ledger" / "other")

    with pytest.raises(InvalidInput) as raised:
        ledger.change(RunStore(open_place(tmp_path)).of_cluster("other"), dict.clear)
    place = tmp_path / "ledger" / "other" / "00000001.parquet"
    assert (
        raised.value.message == f"the ledger does not parse: {place} belongs to another cluster, id"
    )
