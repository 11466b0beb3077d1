"""The order of the runs of a run store: each takes a number when it begins, later ones larger."""

from pathlib import Path

from quota_ops.numbered import create_next, file_name, numbers

_KIND = "json"
_GROUPS = "runs"
_EACH = 1000
"""Numbers in a folder, so that a store of many runs is listed as fast as one of few."""


def take_number(folder: Path, content: bytes, above: int = 0) -> int:
    """Create the file of the next number, larger than each that was taken and than `above`.

    Two runs never take the same one. Raises InvalidInput when the folder cannot be written.
    """
    return create_next(
        lambda number: folder / file_name(number // _EACH, _GROUPS) / file_name(number, _KIND),
        lambda _number: content,
        first=max(last_number(folder), above) + 1,
    )


def last_number(folder: Path) -> int:
    """The largest number that was taken; 0 when none was."""
    groups = numbers(folder, _GROUPS)
    if not groups:
        return 0
    taken = numbers(folder / file_name(groups[-1], _GROUPS), _KIND)
    return max(taken, default=groups[-1] * _EACH - 1)
