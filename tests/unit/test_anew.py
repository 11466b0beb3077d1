"""Files of an earlier attempt that cannot be moved."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.restart import move_attempt


def no_listing(path: str) -> NoReturn:
    """Simulate a folder that may not be listed, which root can always list."""
    raise PermissionError(13, os.strerror(13), path)


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("a file", "/attempt-0001/.* cannot be written: File exists"),
        ("no listing", " cannot be listed: Permission denied"),
    ],
)
def test_what_cannot_be_set_aside(
    trouble: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that cannot be moved are named and stay, and no new attempt starts."""
    (tmp_path / DIFFERENCES.file).touch()
    if trouble == "a file":
        (tmp_path / "attempt-0001").touch()
    else:
        monkeypatch.setattr(os, "scandir", no_listing)

    with pytest.raises(InvalidInput, match=f"{tmp_path} cannot be moved: {tmp_path}{why}"):
        move_attempt(RunFolder(open_place(tmp_path)), "check")

    assert (tmp_path / DIFFERENCES.file).exists()
