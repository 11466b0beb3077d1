"""Numbered files, such as `00000001.json`, each created once and never written again.

A writer creates the next number. If another writer was first, it tries the number after that.
"""

import errno
import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from quota_ops.model.errors import InvalidInput, describe_damage
from quota_ops.model.stored import from_json, to_json
from quota_ops.store.places import written_by
from quota_ops.store.places.place import Place

Content = TypeVar("Content")

MOST_ATTEMPTS = 1000
"""How many numbers a writer tries: far more than there are concurrent writers."""

LAST = 99_999_999
_NAME = re.compile(r"([0-9]{8})\.[a-z]+")


def file_name(number: int, kind: str) -> str:
    """Return the name of a number's file of a type, such as `json`.

    Raises InvalidInput after LAST.
    """
    if number > LAST:
        raise InvalidInput(
            f"{LAST}.{kind} is the largest number that a file can have",
            "No store has so many files: move that file elsewhere if a person put it there.",
        )
    return f"{number:08d}.{kind}"


_NOT_A_FILE = {errno.EISDIR, errno.EINVAL, errno.ELOOP, errno.ENOENT, errno.ENOTDIR}


def is_file_name(name: str, kind: str) -> bool:
    """Return whether this is the name of a numbered file of a type."""
    return bool(_NAME.fullmatch(name)) and name.endswith(f".{kind}")


def numbers(folder: Place, kind: str) -> list[int]:
    """Return the numbers of the files in a folder, in order; empty if it does not exist.

    Files with other names do not count. Raises InvalidInput like `Place.list`.
    """
    found = (_NAME.fullmatch(name) for name in folder.list() if name.endswith(f".{kind}"))
    return sorted(int(name[1]) for name in found if name)


def read_file(place: Place) -> bytes:
    """Return the bytes of a file.

    Raises InvalidInput if the store does not return them, which does not mean that the file is
    damaged, and OSError if something else is in its place.
    """
    try:
        return place.read()
    except OSError as error:
        if error.errno in _NOT_A_FILE:
            raise
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror}",
            "Make the run store readable, and run the command again.",
        ) from error


def encode(kind: type[Content], content: Content) -> bytes:
    """Return the JSON that `read_content` reads, with the version that writes it."""
    return json.dumps(
        written_by.stamp(to_json(kind, content)), ensure_ascii=False, indent=1
    ).encode()


def read_content(place: Place, kind: type[Content], remedy: str) -> Content:
    """Return the content of a JSON file.

    Raises InvalidInput as `read_file` and `require_whole`; NewerFile or OtherForm if another
    version wrote the file; InvalidInput with the remedy if it is damaged.
    """
    values: Any = None
    content: bytes | None = None
    try:
        content = read_file(place)
        values = json.loads(content)
        return from_json(kind, written_by.without_version(values))
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        why = describe_damage(error)
        if newer := written_by.find_newer(values):
            raise written_by.explain_newer(place, newer, why) from error
        require_whole(place, content)
        if values is not None:
            raise written_by.explain_form(place, why) from error
        raise InvalidInput(f"{place} is damaged: {why}", remedy) from error


def require_whole(place: Place, content: bytes | None) -> None:
    """Raise InvalidInput if the store lists another size of a file than it returned.

    A file that does not parse is then not damaged: what is between here and the store is.
    """
    listed = {leaf.size for leaf in place.parent.walk() if leaf.path == place.name}
    if content is not None and listed and listed != {len(content)}:
        raise InvalidInput(
            f"{place} was returned with {len(content):,} bytes, and the run store lists "
            f"{max(listed):,}",
            "Nothing was changed. Run the command again. If it fails again, look for the proxy "
            "that cuts responses; leave the file where it is.",
        )


def create_next(
    place_of: Callable[[int], Place], content_of: Callable[[int], bytes], first: int = 1
) -> int:
    """Create the file of the first free number from `first` on, and return that number.

    Raises InvalidInput like `Place.create`, and if none of many numbers can be created.
    """
    for number in range(first, first + MOST_ATTEMPTS):
        place = place_of(number)
        if not place.exists() and place.create(content_of(number)):
            return number
    raise refused_create(place_of(first))


def refused_create(place: Place) -> InvalidInput:
    """Return the error of a store that reports every new file as an existing one."""
    return InvalidInput(
        f"{place.parent} accepted no new file in {MOST_ATTEMPTS:,} attempts, from {place.name} on",
        "This store cannot make sure that only one writer creates a file: move the run store "
        "to another.",
    )
