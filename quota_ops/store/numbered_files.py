"""Files that count up, `00000001.json`, each created once and never written again.

A writer creates the next number. That fails when another writer was first; then it tries the one
after.
"""

import re
from collections.abc import Callable

from quota_ops.model.errors import InvalidInput
from quota_ops.store.place import Place

MOST_ATTEMPTS = 1000
"""How often a writer tries to be first: far more than there are writers at once."""

LAST = 99_999_999
_NAME = re.compile(r"([0-9]{8})\.[a-z]+")


def file_name(number: int, kind: str) -> str:
    """The name of a number's file of a kind, such as `json`; InvalidInput after the last number."""
    if number > LAST:
        raise InvalidInput(
            f"{LAST}.{kind} is the last number that a file can have",
            "Nobody writes so many: move that file aside if somebody put it there.",
        )
    return f"{number:08d}.{kind}"


def is_file_name(name: str, kind: str) -> bool:
    """Whether this is the name of some number's file of a kind."""
    return bool(_NAME.fullmatch(name)) and name.endswith(f".{kind}")


def numbers(folder: Place, kind: str) -> list[int]:
    """The numbers whose files are there, in order; none where there is no folder.

    A copy that somebody laid beside them under another name does not count. Raises InvalidInput
    as `Place.list` does.
    """
    found = (_NAME.fullmatch(name) for name in folder.list() if name.endswith(f".{kind}"))
    return sorted(int(name[1]) for name in found if name)


def create_next(
    place_of: Callable[[int], Place], content_of: Callable[[int], bytes], first: int = 1
) -> int:
    """Create the file of the first free number from `first` on, and return that number.

    Raises InvalidInput as `Place.create` does, and when none of many numbers can be created.
    """
    for number in range(first, first + MOST_ATTEMPTS):
        place = place_of(number)
        if not place.exists() and place.create(content_of(number)):
            return number
    raise refused_create(place_of(first))


def refused_create(place: Place) -> InvalidInput:
    """The error of a place that reports every new file as one that exists already."""
    return InvalidInput(
        f"{place.parent} took no new file in {MOST_ATTEMPTS:,} attempts, from {place.name} on",
        "Its file system does not keep the promise that a file is created once: move the run store "
        "to another.",
    )
