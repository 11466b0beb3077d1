"""What a ledger ended with, kept where a restored copy of all ledgers does not reach."""

import shutil
from pathlib import Path

import pytest

from quota_ops import ledger
from tests.unit.test_ledger import add, row


def test_what_a_ledger_ended_with(ledger_folder: Path, tmp_path: Path) -> None:
    """It is told also where an older copy of all ledgers is in its place, until the next change."""
    assert ledger.end(ledger_folder) is None
    add(ledger_folder, row("user=a", 1.0))
    shutil.copytree(ledger_folder.parent, tmp_path / "copy")
    add(ledger_folder, row("user=b", 1.0))
    add(ledger_folder, row("user=c", 1.0))
    shutil.rmtree(ledger_folder.parent)
    shutil.copytree(tmp_path / "copy", ledger_folder.parent)

    assert (ledger.read(ledger_folder).file, ledger.end(ledger_folder)) == (
        "00000001.parquet",
        "00000003.parquet",
    )
    assert add(ledger_folder, row("user=d", 1.0)) == ledger.end(ledger_folder) == "00000002.parquet"


@pytest.mark.parametrize("content", [b"", b"\xff", b"\x1b[2J00000001.parquet", b"1.parquet"])
def test_a_damaged_end_is_none(content: bytes, ledger_folder: Path) -> None:
    """What is no name of a file says nothing."""
    add(ledger_folder, row("user=a", 1.0))
    (ends,) = ledger_folder.parent.with_name("ledger_ends").iterdir()
    ends.write_bytes(content)
    assert ledger.end(ledger_folder) is None
