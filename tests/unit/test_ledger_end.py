"""The last state of a ledger, kept where a restored copy of all ledgers does not reach."""

import shutil
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.ledger import ledger, ledger_end
from quota_ops.store.ledger.ledger_end import LedgerEnd
from quota_ops.store.places.run_store import ClusterStore
from tests.places import on_disk
from tests.unit.test_ledger import POLICY, add, row, rows


def read_name(records: ClusterStore) -> str | None:
    """Return the name of the noted end."""
    end = ledger_end.read(records)
    return end and end.name


def test_what_a_ledger_ended_with(records: ClusterStore, tmp_path: Path) -> None:
    """The noted end stays while an older copy is in use, until that copy has caught up."""
    assert ledger_end.read(records) is None
    add(records, row("user=a", 1.0))
    shutil.copytree(on_disk(records.ledger.parent), tmp_path / "copy")
    add(records, row("user=b", 1.0))
    add(records, row("user=c", 1.0))
    shutil.rmtree(on_disk(records.ledger.parent))
    shutil.copytree(tmp_path / "copy", on_disk(records.ledger.parent))

    assert (ledger.read(records).file, read_name(records)) == (
        "00000001.parquet",
        "00000003.parquet",
    )
    assert add(records, row("user=d", 1.0)) == "00000002.parquet"
    assert read_name(records) == "00000003.parquet"
    assert ledger.change(records, lambda _: None, policy=POLICY) == "00000003.parquet"
    add(records, row("user=e", 1.0))
    assert read_name(records) == "00000004.parquet"


def test_a_run_goes_on_from_an_older_copy(
    records: ClusterStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noted end goes back if a run is verified on an older copy, or the ledger is rebuilt."""
    for name in "abc":
        add(records, row(f"user={name}", 1.0))
    on_disk(records.ledger / "00000003.parquet").unlink()
    on_disk(records.ledger / "00000002.parquet").unlink()
    ledger.change(records, lambda _: None, policy=POLICY)
    assert read_name(records) == "00000002.parquet"
    shutil.rmtree(on_disk(records.ledger))
    monkeypatch.setattr("quota_ops.store.places.local._watched", set())  # as in a new process
    add(records, row("user=a", 1.0))
    assert read_name(records) == "00000001.parquet"


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"\x1b[2J00000001.parquet", b"00000001.parquet", None]
)
def test_an_end_that_is_lost_or_damaged(content: bytes | None, records: ClusterStore) -> None:
    """A noted end that is lost or damaged is unknown until a run is verified on the ledger."""
    add(records, row("user=a", 1.0))
    ends = on_disk(records.ledger.parent).with_name("ledger_ends") / records.ledger.name
    ends.unlink() if content is None else ends.write_bytes(content)

    assert ledger_end.read(records) is None
    add(records, row("user=b", 1.0))
    assert ledger_end.read(records) is None
    assert ledger.change(records, lambda _: None, policy=POLICY) == "00000003.parquet"
    assert read_name(records) == "00000003.parquet"


def test_an_end_that_a_person_wrote(records: ClusterStore) -> None:
    """A line break at the end, as editors add it, is accepted."""
    add(records, row("user=a", 1.0))
    ends = on_disk(records.ledger.parent).with_name("ledger_ends") / records.ledger.name
    ends.write_text(f"{ends.read_text()}\n")
    assert read_name(records) == "00000001.parquet"


OLDER = "an older copy of the ledger, whose newest file was 00000003.parquet"
LOST = "no ledger: its newest file, 00000003.parquet, is lost"
OTHER = "another copy of the ledger: it lacks the 00000003.parquet that a run wrote last"
CHANGED = (
    "a changed ledger, or another copy of it: its 00000003.parquet is not the file that a run "
    "wrote last"
)
UNKNOWN = (
    "a ledger that may be an older copy: the run store has no record of its newest file "
    "(ledger_ends is lost or damaged)"
)


@pytest.mark.parametrize(
    ("read", "end", "doubt"),
    [
        (0, None, None),
        (2, None, UNKNOWN),
        (0, b"3", LOST),
        (2, b"3", OLDER),
        (3, b"3", None),
        (4, b"3", None),
        (3, b"other", CHANGED),
        (4, b"other", CHANGED),
        (4, b"other", OTHER),
    ],
)
def test_why_a_ledger_may_be_an_older_copy(
    read: int, end: bytes | None, doubt: str | None, records: ClusterStore
) -> None:
    """Only an end whose file the ledger has, byte by byte, removes every doubt."""
    names = [f"{number:08}.parquet" for number in range(1, read + 1)]
    for number, name in enumerate(names, start=1):
        (records.ledger / name).create(b"%d" % number)
    if doubt is OTHER:
        (records.ledger / "00000003.parquet").delete()
    noted = end and LedgerEnd.of_file("00000003.parquet", end)

    assert ledger_end.explain_old_copy(records, ([None, *names])[-1], noted or None) == doubt


def test_an_end_that_cannot_be_written_is_an_error(records: ClusterStore) -> None:
    """The change is stored, and its writer is warned that the next run cannot check it."""
    add(records, row("user=a", 1.0))
    ends = on_disk(records.ledger.parent).with_name("ledger_ends")
    shutil.rmtree(ends)
    ends.write_text("a file")

    with pytest.raises(InvalidInput, match=f"^{ends}/{records.ledger.name} cannot be written"):
        ledger.change(records, lambda known: known.update(rows(row("user=b", 1.0))), policy=POLICY)
    with pytest.raises(InvalidInput, match=f"^{ends}/{records.ledger.name} cannot be read"):
        ledger_end.read(records)
    assert [one.entity for one in ledger.read(records).rows] == ["user=a", "user=b"]
