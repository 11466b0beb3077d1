"""Checks that values read from a file have the types that their class declares."""

from collections.abc import Iterable, Sequence
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Row = TypeVar("Row")


def check_types(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows, all of one class; TypeError if a value does not have its field's type.

    The items of tuples and sets are checked too. The check goes field by field, because there are
    many rows and few fields.
    """
    kind: type = type(rows[0]) if rows else object
    for name, (types, inside) in _types(kind).items():
        values = list(map(attrgetter(name), rows))
        found = set(map(type, values)) - types
        if inside:
            within = (one for some in values if some is not None for one in some)
            found |= set(map(type, within)) - inside
        if found:
            raise TypeError(f"{name} is {', '.join(sorted(one.__name__ for one in found))}")
    return tuple(rows)


def refuse_unknown(values: Iterable[str], known: Iterable[str]) -> None:
    """Raise ValueError for a field that this version does not know and so would disregard."""
    if unknown := sorted({*values} - {*known}):
        raise ValueError(f"it has an unknown field {unknown[0]!r}")


@cache
def _types(row: type) -> dict[str, tuple[frozenset[Any], frozenset[Any]]]:
    """Return the types of each field, and the types of the items of a tuple or a set."""
    return {name: _of_hint(hint) for name, hint in get_type_hints(row).items()}


def _of_hint(hint: Any) -> tuple[frozenset[Any], frozenset[Any]]:
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    inside = (one for part in parts for one in get_args(part) if one is not Ellipsis)
    return (
        frozenset(get_origin(part) or part for part in parts),
        frozenset(get_origin(one) or one for one in inside),
    )
