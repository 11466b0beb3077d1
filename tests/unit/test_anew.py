"""What an earlier attempt left, and cannot be moved."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.tables import DIFFERENCES
from quota_ops.store.restart import set_aside
from quota_ops.store.run_folder import RunFolder


def no_listing(_path: Path) -> Iterator[Path]:
    """What root never meets: a folder that may not be listed."""
    raise PermissionError(13, os.strerror(13))


@pytest.mark.parametrize(
    ("trouble", "why"), [("a file", "File exists"), ("no listing", "Permission denied")]
)
def test_what_cannot_be_set_aside(
    trouble: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and stays where it is: no attempt begins upon another's outcomes."""
    (tmp_path / DIFFERENCES.file).touch()
    if trouble == "a file":
        (tmp_path / "attempt-0001").touch()
    else:
        monkeypatch.setattr(Path, "iterdir", no_listing)

    with pytest.raises(InvalidInput, match=f"{tmp_path} cannot be set aside: {why}"):
        set_aside(RunFolder(tmp_path), "check")

    assert (tmp_path / DIFFERENCES.file).exists()
