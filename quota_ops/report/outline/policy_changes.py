"""What differs between two policies, as every output shows it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from quota_ops.model.plans.capacity import Amounts
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import escape_text

_LONGEST_SAME = 60
"""How much of two texts may be the same before only their differing ends are shown."""
_KEPT = 20
_MOST = 20
"""How many changes, and how many names that a list gains or loses, are shown."""


class PolicyChange(NamedTuple):
    """A field of cluster.yaml, for example `owners.search.users`, and its values, as texts."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def format(self, quoted: Callable[[str], str] = escape_text) -> str:
        """Return `guards.removals: 20 -> 9`; of a list, what it gains and loses: `users: + ann`.

        `quoted` is applied to the name and to each value.
        """
        if max(len(self.before), len(self.after)) > 1:
            gained = [quoted(text) for text in self.after if text not in self.before]
            lost = [quoted(text) for text in self.before if text not in self.after]
            sides = (("+", gained), ("-", lost))
            parts = (f"{sign} {', '.join(_cut(some, 'more'))}" for sign, some in sides if some)
            words = "; ".join(parts) or "in another order"
        else:
            before, after = "".join(self.before), "".join(self.after)
            pairs = enumerate(zip_longest(before, after))
            same = next(at for at, (old, new) in pairs if old != new)
            if same > _LONGEST_SAME:
                before, after = (f"…{text[same - _KEPT :]}" for text in (before, after))
            words = " -> ".join(quoted(text) if text else "none" for text in (before, after))
        return f"{quoted(self.name)}: {words}"


def format_changes(
    changes: Sequence[PolicyChange], quoted: Callable[[str], str] = escape_text
) -> list[str]:
    """Return a line for each change, or for the first of many, and the number of the others."""
    return _cut([change.format(quoted) for change in changes], "more setting")


def _cut(texts: list[str], more: str) -> list[str]:
    left = len(texts) - _MOST
    return texts if left <= 0 else [*texts[:_MOST], f"and {counted(left, more)}"]


def compare_policies(old: Policy | None, new: Policy | None) -> tuple[PolicyChange, ...]:
    """Return the fields of cluster.yaml that differ, by name; none without one of the policies."""
    if old is None or new is None:
        return ()
    before, after = _list_fields(old), _list_fields(new)
    return tuple(
        PolicyChange(name, before.get(name, ()), after.get(name, ()))
        for name in sorted(before.keys() | after.keys())
        if name != "cluster" and before.get(name, ()) != after.get(name, ())
    )


def _list_fields(policy: Policy) -> dict[str, tuple[str, ...]]:
    filters = {
        name: [entity_filter.text for entity_filter in getattr(policy, name)]
        for name in ("scope", "protect")
    }
    ceilings = {
        ceiling.owner: {**_format_amounts(ceiling.each), "total": _format_amounts(ceiling.total)}
        for ceiling in policy.ceilings
    }
    capacity = policy.capacity and {
        **_format_amounts(policy.capacity.limits),
        "factor": policy.capacity.factor,
    }
    limits = {"ceilings": ceilings, "capacity": capacity}
    return dict(_flatten("", policy.as_json() | filters | limits))


def _format_amounts(amounts: Amounts) -> dict[str, str]:
    return {key: format_limit(key, value) for key, value in amounts}


def _flatten(name: str, value: object) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each field below `name` and its values; those of a named item are below its name."""
    if isinstance(value, Mapping):
        for field, below in value.items():
            yield from _flatten(f"{name}.{field}" if name else field, below)
    elif isinstance(value, list) and all(map(_is_pair, value)):
        yield from _flatten(name, dict(value))
    elif isinstance(value, list) and (items := _name_items(value)):
        yield name, tuple(items)
        yield from _flatten(name, items)
    elif value is not None:
        values = value if isinstance(value, list) else [value]
        yield name, tuple(_as_text(name, item) for item in values)


def _is_pair(item: object) -> bool:
    """Return whether an item of a list is the name and the value of a field."""
    return isinstance(item, list) and [isinstance(part, str) for part in item][:1] == [True]


def _name_items(items: list[Any]) -> dict[str, dict[str, Any]]:
    """Return what each owner or retired broker of a list sets, by its name."""
    return {
        str(item[key]): {field: value for field, value in item.items() if value and field != key}
        for item in items
        for key in ("name", "id")
        if isinstance(item, dict) and key in item
    }


def _as_text(name: str, value: object) -> str:
    if name == "approval_valid_for":
        return f"{value:,} seconds"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
