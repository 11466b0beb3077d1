"""An alteration: the changes of one request entry to one entity."""

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import chain, groupby
from math import isfinite

from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import MAX_EXACT, QUOTA_KEYS, UNLIMITED, parse_limit
from quota_ops.model.quotas.rows import Stored
from quota_ops.model.quotas.snapshot import EXAMPLE, numbered_rows, parse_row
from quota_ops.model.quotas.specification import require_text


class Alteration(Struct, frozen=True):
    """Keys of one entity and their new values; None clears a key.

    Kafka calls it ClientQuotaAlteration; all its keys succeed or fail together.
    """

    entity: Entity
    changes: tuple[tuple[str, float | None], ...]


Typed = Callable[[Stored], tuple[Alteration, ...]]
"""What a person typed in place of YAML, for a cluster that stores these values."""


def group_alterations(rows: Iterable[Difference]) -> tuple[Alteration, ...]:
    """Group the rows of a batch, which are sorted by entity, into one alteration per entity."""
    return tuple(
        Alteration(Entity.parse(entity), tuple((row.key, row.target) for row in group))
        for entity, group in groupby(rows, key=lambda row: row.entity)
    )


_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")

Changes = tuple[tuple[str, float | None], ...]


def parse_changes(add: Sequence[str], delete: Sequence[str]) -> Changes:
    """Parse `--add consumer_byte_rate=20 MB` and `--delete producer_byte_rate`.

    Each option may be given several times, with several changes separated by commas. A deleted key
    has the value None. Raises InvalidInput without a change, if a key is specified twice or
    misspelled, or if `parse_value` rejects a value.
    """
    for option, given in (("--add", add), ("--delete", delete)):
        for text in given:
            require_text(option, text)
    changes: list[tuple[str, float | None]] = []
    for text in (part.strip() for given in add for part in given.split(",")):
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"--add {text!r} has no value", "Write KEY=VALUE.")
        changes.append((key, _value(key, value)))
    for key in (part.strip() for given in delete for part in given.split(",")):
        if key not in QUOTA_KEYS and (near := get_close_matches(key, QUOTA_KEYS, 1)):
            raise InvalidInput(f"{key} is not a quota key; did you mean {near[0]}?")
        changes.append((key, None))
    if not changes:
        raise InvalidInput("no change is specified", "Add --add KEY=VALUE or --delete KEY.")
    keys = [key for key, _ in changes]
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidInput(f"{key} is specified twice", "Specify each key once.")
    return tuple(changes)


def _value(key: str, text: str) -> float:
    try:
        return parse_value(key, text)
    except ValueError as error:
        raise InvalidInput(f"{key} {error}") from None


def parse_value(key: str, text: str) -> float:
    """Parse the value to send: of a known key, a limit as YAML has it (`10 MiB`, `unlimited`).

    An unknown key may have any finite number, so that the broker's own message is shown. Raises
    ValueError for all else.
    """
    if known := QUOTA_KEYS.get(key):
        return parse_limit(known, text)
    if not _NUMBER.fullmatch(text.strip()):
        if near := get_close_matches(key, QUOTA_KEYS, 1):
            raise ValueError(f"is not a quota key; did you mean {near[0]}?")
        raise ValueError(f"must be a number, not {text!r}")
    return check_value(key, float(text))


def check_value(key: str, value: float) -> float:
    """Return the value; raise ValueError if a broker would store it but read another value.

    Kafka before 4.4 stores NaN and Infinity, every version stores a tiny fraction of a byte, and
    above 2^53 a double skips numbers. Source: ClientQuotaControlManager.validateQuotaKeyValue.
    """
    if not isfinite(value):
        raise ValueError("must be a finite number")
    known = QUOTA_KEYS.get(key)
    if known is None or not known.whole:
        return value
    if value != int(value):
        raise ValueError(f"must be a whole number of {known.unit}")
    if value > MAX_EXACT and float(value) < known.unlimited:
        raise ValueError(
            f"must not be above {int(MAX_EXACT)}; to lift the limit, write {UNLIMITED}"
        )
    return value


def read_changes(lines: Iterable[str], place: str) -> tuple[Alteration, ...]:
    """Read a file with one change per line, as in a snapshot; a null value clears the key.

    A value may be a limit in quotes, `"10 MiB"`. The header of a snapshot is skipped. Raises
    InvalidInput with `place` and the line.
    """
    found: dict[Entity, dict[str, float | None]] = {}
    for number, line in numbered_rows(lines):
        try:
            entity, key, value = _parse_change(line)
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            why = f" {error}" if type(error) is ValueError else ""
            raise InvalidInput(
                f"{place}:{number}: this is not a change.{why}",
                f"Write each change as one line like {EXAMPLE}",
            ) from None
        if key in found.setdefault(entity, {}):
            raise InvalidInput(f"{place}:{number}: {entity.text} has {key} twice.")
        found[entity][key] = value
    if not found:
        raise InvalidInput(f"{place} has no changes", f"Write each as one line like {EXAMPLE}")
    return tuple(Alteration(entity, tuple(keys.items())) for entity, keys in found.items())


def _parse_change(line: str) -> tuple[Entity, str, float | None]:
    entity, key, value = parse_row(line)
    if any(map(_SURROGATE.search, filter(None, (key, *chain.from_iterable(entity.parts))))):
        raise ValueError("Half a surrogate pair is not text.")
    if value is None:
        if key not in QUOTA_KEYS and (near := get_close_matches(key, QUOTA_KEYS, 1)):
            raise ValueError(f"{key} is not a quota key; did you mean {near[0]}?")
        return entity, key, None
    try:
        is_text = isinstance(value, str)
        return entity, key, float((parse_value if is_text else check_value)(key, value))
    except ValueError as error:
        raise ValueError(f"{key} {error}.") from None
