"""The last state of a ledger, kept where a restored copy of all ledgers does not reach."""

import shutil
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store import ledger, ledger_end
from quota_ops.store.place import Place
from tests.places import on_disk
from tests.unit.test_ledger import POLICY, add, row


def test_what_a_ledger_ended_with(ledger_folder: Place, tmp_path: Path) -> None:
    """The noted end stays while an older copy is in use, until that copy has caught up."""
    assert ledger_end.read(ledger_folder) is None
    add(ledger_folder, row("user=a", 1.0))
    shutil.copytree(on_disk(ledger_folder.parent), tmp_path / "copy")
    add(ledger_folder, row("user=b", 1.0))
    add(ledger_folder, row("user=c", 1.0))
    shutil.rmtree(on_disk(ledger_folder.parent))
    shutil.copytree(tmp_path / "copy", on_disk(ledger_folder.parent))

    assert (ledger.read(ledger_folder).file, ledger_end.read(ledger_folder)) == (
        "00000001.parquet",
        "00000003.parquet",
    )
    assert add(ledger_folder, row("user=d", 1.0)) == "00000002.parquet"
    assert ledger_end.read(ledger_folder) == "00000003.parquet"
    assert ledger.change(ledger_folder, lambda _: None, policy=POLICY) == "00000003.parquet"
    add(ledger_folder, row("user=e", 1.0))
    assert ledger_end.read(ledger_folder) == "00000004.parquet"


def test_a_run_goes_on_from_an_older_copy(
    ledger_folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noted end goes back if a run is verified on an older copy, or the ledger is rebuilt."""
    for name in "abc":
        add(ledger_folder, row(f"user={name}", 1.0))
    on_disk(ledger_folder / "00000003.parquet").unlink()
    on_disk(ledger_folder / "00000002.parquet").unlink()
    ledger.change(ledger_folder, lambda _: None, policy=POLICY)
    assert ledger_end.read(ledger_folder) == "00000002.parquet"
    shutil.rmtree(on_disk(ledger_folder))
    monkeypatch.setattr("quota_ops.store.local._watched", set())  # as in a new process
    add(ledger_folder, row("user=a", 1.0))
    assert ledger_end.read(ledger_folder) == "00000001.parquet"


@pytest.mark.parametrize("content", [b"", b"\xff", b"\x1b[2J00000001.parquet", b"1.parquet", None])
def test_an_end_that_is_lost_or_damaged(content: bytes | None, ledger_folder: Place) -> None:
    """A noted end that is lost or damaged is unknown until a run is verified on the ledger."""
    add(ledger_folder, row("user=a", 1.0))
    ends = on_disk(ledger_folder.parent).with_name("ledger_ends") / ledger_folder.name
    ends.unlink() if content is None else ends.write_bytes(content)

    assert ledger_end.read(ledger_folder) is None
    add(ledger_folder, row("user=b", 1.0))
    assert ledger_end.read(ledger_folder) is None
    assert ledger.change(ledger_folder, lambda _: None, policy=POLICY) == "00000003.parquet"
    assert ledger_end.read(ledger_folder) == "00000003.parquet"


def test_an_end_that_a_person_wrote(ledger_folder: Place) -> None:
    """A line break at the end, as editors add it, is accepted."""
    add(ledger_folder, row("user=a", 1.0))
    ends = on_disk(ledger_folder.parent).with_name("ledger_ends") / ledger_folder.name
    ends.write_text("00000001.parquet\n")
    assert ledger_end.read(ledger_folder) == "00000001.parquet"


@pytest.mark.parametrize(
    ("read", "end", "doubt"),
    [
        (None, None, None),
        ("00000003.parquet", "00000003.parquet", None),
        ("00000004.parquet", "00000003.parquet", None),
        (
            None,
            "00000003.parquet",
            "an older copy of the ledger, whose newest file was 00000003.parquet",
        ),
        (
            "00000002.parquet",
            "00000003.parquet",
            "an older copy of the ledger, whose newest file was 00000003.parquet",
        ),
        (
            "00000002.parquet",
            None,
            (
                "a ledger that may be an older copy: the run store has no record of its newest "
                "file (ledger_ends is lost or damaged)"
            ),
        ),
    ],
)
def test_why_a_ledger_may_be_an_older_copy(
    read: str | None, end: str | None, doubt: str | None
) -> None:
    """Only an end that is known, and not ahead of the ledger, removes every doubt."""
    assert ledger_end.explain_old_copy(read, end) == doubt


def test_an_end_that_cannot_be_written_is_an_error(ledger_folder: Place) -> None:
    """The change is stored, and its writer is warned that the next run cannot check it."""
    ends = on_disk(ledger_folder.parent).with_name("ledger_ends")
    ends.write_text("a file")

    with pytest.raises(InvalidInput, match=f"^{ends}/{ledger_folder.name} cannot be written"):
        add(ledger_folder, row("user=a", 1.0))
    with pytest.raises(InvalidInput, match=f"^{ends}/{ledger_folder.name} cannot be read"):
        ledger_end.read(ledger_folder)
    assert [one.entity for one in ledger.read(ledger_folder).rows] == ["user=a"]
