"""The JSON of a run's files, of which a test gives the fields that matter to it."""

from inspect import isclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from quota_ops.model.commit import Provenance
from quota_ops.model.stored import to_json
from quota_ops.store.run.files import find_run_file


def complete(name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return JSON values with every field that the file has to have; `commit` is that of run.json.

    The others have their default, or are empty.
    """
    file = find_run_file(name)
    if file is None or not issubclass(file.kind, Struct):
        return values
    hints = get_type_hints(file.kind)
    found = {
        field.name: _make_default(field, hints[field.name])
        for field in fields(file.kind)
        if field.name not in values
    }
    if "provenance" in hints and "commit" in values:
        commit = to_json(Provenance, Provenance(values["commit"]))
        values = {key: value for key, value in values.items() if key != "commit"}
        found["provenance"] = commit
    found |= values
    return {name: found[name] for name in (*hints, *found) if name in found}  # in their order


def _make_default(field: Any, hint: Any) -> Any:
    if field.default is not NODEFAULT:
        return field.default
    if field.default_factory is not NODEFAULT:
        return to_json(hint, field.default_factory())
    if type(None) in get_args(hint):
        return None
    if isclass(hint) and issubclass(hint, Struct):
        return {}
    if get_origin(hint) is tuple:
        return []
    return {int: 0, float: 0, Literal[1]: 1}.get(hint, "")
