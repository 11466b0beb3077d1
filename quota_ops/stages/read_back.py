"""What verify has seen since it was last written."""

from collections.abc import Set as AbstractSet
from pathlib import Path

from quota_ops.run_folder import APPLIED, VERIFIED, RunFolder
from quota_ops.run_json import verification_from_json

Keys = AbstractSet[tuple[str, str]]
"""Rows by (entity, key)."""


def read_back(folder: RunFolder, rows: Keys) -> Keys:
    """Those of a run's rows that a verify of it found as they should be since apply ended.

    Raises InvalidInput when verification.json is damaged.
    """
    written, read = folder.path / APPLIED, folder.path / VERIFIED
    if not rows or not folder.has(VERIFIED) or _age(read) < _age(written):
        return frozenset()
    _, verdicts, _ = folder.read_as(VERIFIED, verification_from_json)
    return rows - {(one.entity, one.key) for one in verdicts}


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns
