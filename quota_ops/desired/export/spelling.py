"""Names and limits as YAML text: the reverse of scalars.py and names.py."""

import re
from decimal import Decimal

from quota_ops.desired.yaml.scalars import is_text
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import BYTES, UNLIMITED, QuotaKey, in_byte_unit, parse_limit
from quota_ops.model.text import is_visible

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_TWO_DIGITS, _FOUR_DIGITS = 0x100, 0x10000


def spell_text(text: str) -> str:
    """Format a text as a YAML scalar on one line, in quotes if any YAML parser needs them."""
    if _PLAIN.fullmatch(text) and is_text(text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if is_visible(char):
        return char
    code = ord(char)
    if code < _TWO_DIGITS:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _FOUR_DIGITS else f"\\U{code:08x}"


def spell_comment(text: str) -> str:
    """Format any text as a comment on one line."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def spell_name(name: str | None) -> str:
    """Format the name of an entity part; None is the default."""
    return "{default: true}" if name is None else spell_text(name)


def spell_filter(entity: Entity) -> str:
    """Format an entity as an entry of `scope` or `protect`: `{user: alice}`."""
    return f"{{{', '.join(f'{kind}: {spell_name(name)}' for kind, name in entity.user_first)}}}"


def spell_limit(key: QuotaKey, value: float) -> str | None:
    """Format a value as a limit in the shortest unit; None if no limit has this value."""
    if value == key.unlimited:
        return UNLIMITED
    for text in _spellings(key, value):
        try:
            if parse_limit(key, text) == value:
                return text
        except ValueError:
            continue
    return None


def _spellings(key: QuotaKey, value: float) -> tuple[str, ...]:
    try:
        whole = int(value)
    except (OverflowError, ValueError):  # an infinity, NaN
        return ()
    plain = str(whole) if value == whole else format(Decimal(repr(value)), "f")
    if key.unit != BYTES:
        return (plain,)
    number, unit = in_byte_unit(value)
    return (plain,) if unit == "B" else (f"{number.replace(',', '')} {unit}", plain)
