"""The holds of a cluster, kept in the run store: a numbered file for each word of a person."""

import json
from datetime import UTC, datetime
from pathlib import Path

from quota_ops.model.errors import InvalidInput
from quota_ops.model.filter import EntityFilter
from quota_ops.model.hold import Hold, in_force
from quota_ops.store import local
from quota_ops.store.login import find_login
from quota_ops.store.numbered_files import create_next, file_name, numbers

_KIND = "json"


def read(folder: Path) -> tuple[Hold, ...]:
    """Every word on a cluster in the order in which they were said; none where there is no folder.

    Raises InvalidInput when a file does not parse: a damaged hold is no hold that ended.
    """
    return tuple(_read(folder / file_name(number, _KIND)) for number in numbers(folder, _KIND))


def add(folder: Path, hold: Hold) -> None:
    """Keep a word, after all those that are there; nothing that was said is ever changed."""
    content = json.dumps(hold.as_json(), ensure_ascii=False, indent=1).encode()
    create_next(
        lambda number: folder / file_name(number, _KIND),
        lambda _number: content,
        first=max(numbers(folder, _KIND), default=0) + 1,
    )


def release(folder: Path, who: EntityFilter, *, by: str, reason: str) -> Hold:
    """End a hold early; InvalidInput when there is none on exactly these entities."""
    now = datetime.now(UTC).replace(microsecond=0)
    lasting = in_force(read(folder), now)
    if who not in {one.who for one in lasting}:
        held = "; ".join(f"{one.who.text}, {one.text}" for one in lasting)
        raise InvalidInput(f"{who.text} is not held", f"Held now: {held or 'nobody'}.")
    word = Hold(who, now, by, reason, now, find_login())
    add(folder, word)
    return word


def _read(file: Path) -> Hold:
    try:
        return Hold.from_json(json.loads(local.read(file)))
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"{file} is not a hold: {error}",
            "Nothing was changed. Move the damaged file aside, and hold again what it held.",
        ) from error
