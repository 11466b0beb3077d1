"""Values of frozen classes as JSON values and back, by the types of their fields."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from inspect import isclass
from threading import Lock
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.quota import json_number

Value = TypeVar("Value")
Step = Callable[[Any], Any]
_PREPARING = Lock()


def to_json(kind: Any, value: Any) -> Any:
    """Return a value of a type as JSON values, its fields by name.

    NaN and infinity become text, a time is in UTC to the second, a set is sorted, and a mapping is
    a list of pairs. A named tuple leaves out the fields with their default value, because files
    have many of them.
    """
    return msgspec.to_builtins(_prepare_form(kind).dump(value))


def from_json(kind: type[Value], values: Any) -> Value:
    """Return the value that `to_json` stored.

    Raises ValueError, which names the first field that is missing, unknown or of another type.
    """
    form = _prepare_form(kind)
    found: Value = form.load(msgspec.convert(values, form.stored))
    return found


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of what `to_json` makes of a class; it allows further fields."""
    schema: dict[str, Any] = msgspec.json.schema(_prepare_form(kind).stored)
    for part in schema["$defs"].values():
        part.pop("additionalProperties", None)
    return schema


def _keep(value: Any) -> Any:
    return value


class _Form(NamedTuple):
    """The type that msgspec reads in place of another type, and the steps to it and back."""

    stored: Any
    dump: Step = _keep
    load: Step = _keep


def _prepare_form(kind: Any) -> _Form:
    with _PREPARING:
        return _prepare_once(kind)


@cache
def _prepare_once(kind: Any) -> _Form:
    form = _find_form(kind)
    complete_type(form.stored)
    return form


def complete_type(kind: Any) -> None:
    """Complete what msgspec knows of a type, before threads use it.

    msgspec does so at first use. A second thread that uses the type meanwhile crashes the process.
    """
    msgspec.json.Decoder(kind)


@cache
def _find_form(kind: Any) -> _Form:
    origin, parts = get_origin(kind), get_args(kind)
    form = _Form(kind)
    if kind is float:
        form = _Form(float | Literal["nan", "inf", "-inf"], json_number, float)
    elif kind is datetime:
        form = _Form(Annotated[datetime, msgspec.Meta(tz=True)], iso_utc)
    elif origin in {Union, UnionType}:
        form = _form_of_union(parts)
    elif origin is tuple and parts[-1] is not Ellipsis:
        forms = [_find_form(part) for part in parts]
        dump, load = _steps(forms)
        stored = tuple.__class_getitem__(tuple(form.stored for form in forms))
        form = _Form(stored, dump, lambda values: tuple(load(values)))
    elif origin in {tuple, frozenset}:
        form = _form_of_items(origin, _find_form(parts[0]))
    elif origin is Mapping:
        pairs = _form_of_items(dict, _find_form(tuple.__class_getitem__(parts)))
        form = pairs._replace(dump=lambda values: pairs.dump(values.items()))
    elif isclass(kind) and issubclass(kind, Enum) and not issubclass(kind, str):
        names = Literal[tuple(member.name.lower() for member in kind)]  # type: ignore[valid-type]
        form = _Form(names, lambda member: member.name.lower(), lambda name: kind[name.upper()])
    elif hasattr(kind, "__match_args__"):
        form = _form_of_class(kind, "")
    return form


def _steps(forms: Sequence[_Form]) -> tuple[Step, Step]:
    """Return the steps from and to a sequence whose items have these forms."""

    def change_each(steps: Sequence[Step]) -> Step:
        some = [(index, step) for index, step in enumerate(steps) if step is not _keep]

        def change(values: Iterable[Any]) -> list[Any]:
            items = list(values)
            for index, step in some:
                items[index] = step(items[index])
            return items

        return change

    return change_each([form.dump for form in forms]), change_each([form.load for form in forms])


def _form_of_items(collect: Step, form: _Form) -> _Form:
    def dump(values: Iterable[Any]) -> list[Any]:
        return list(map(form.dump, sorted(values) if collect is frozenset else values))

    return _Form(
        tuple.__class_getitem__((form.stored, ...)),
        dump,
        lambda values: collect(map(form.load, values)),
    )


def _form_of_union(kinds: Sequence[Any]) -> _Form:
    """Return the form of an optional type, or of classes, whose names the JSON then has."""
    if len(kinds) == 2 and type(None) in kinds:  # noqa: PLR2004
        form = _find_form(next(kind for kind in kinds if kind is not type(None)))
        return _Form(form.stored | None, _unless_none(form.dump), _unless_none(form.load))
    forms = {kind: _form_of_class(kind, kind.__name__) for kind in kinds}
    loads = {form.stored: form.load for form in forms.values()}
    return _Form(
        Union[tuple(loads)],  # noqa: UP007 - of a tuple
        lambda value: forms[type(value)].dump(value),
        lambda value: loads[type(value)](value),
    )


def _unless_none(step: Step) -> Step:
    return step if step is _keep else lambda value: None if value is None else step(value)


def _form_of_class(kind: Any, tag: str) -> _Form:
    """Return the form of a record or a named tuple: a struct with the same fields."""
    hints = get_type_hints(kind)
    usual = getattr(kind, "_field_defaults", {})  # those of a record must be in a file
    forms = {name: _find_form(hints[name]) for name in kind.__match_args__}
    struct = msgspec.defstruct(
        kind.__name__,
        [
            (name, form.stored, *([form.dump(usual[name])] if name in usual else ()))
            for name, form in forms.items()
        ],
        forbid_unknown_fields=True,
        omit_defaults=True,
        tag=tag or None,
    )
    dump, load = _steps(tuple(forms.values()))
    row = issubclass(kind, tuple)
    return _Form(
        struct,
        lambda value: struct(*dump(value if row else [getattr(value, name) for name in forms])),
        lambda value: kind(*load(msgspec.structs.astuple(value))),
    )
