"""What unit tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def ledger_folder(tmp_path: Path) -> Path:
    """The folder of a cluster's ledger in a run store, empty."""
    folder = tmp_path / "ledger" / "id"
    folder.mkdir(parents=True)
    return folder
