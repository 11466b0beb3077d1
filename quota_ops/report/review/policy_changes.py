"""What a branch changes in cluster.yaml."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from quota_ops.model.plans.policy import Policy
from quota_ops.model.runs.review import ClusterReview


class PolicyChange(NamedTuple):
    """A field of cluster.yaml and its values as text, empty for none; `guards.cut_share`."""

    name: str
    before: str
    after: str


def list_policy_changes(review: ClusterReview) -> tuple[PolicyChange, ...]:
    """Return the fields of cluster.yaml that differ from the merge base, by name."""
    return compare_policies(review.base and review.base.policy, review.policy)


def compare_policies(old: Policy | None, new: Policy | None) -> tuple[PolicyChange, ...]:
    """Return the fields of cluster.yaml that differ, by name; none without one of the policies."""
    if old is None or new is None:
        return ()
    before, after = _as_texts(old), _as_texts(new)
    return tuple(
        PolicyChange(name, before.get(name, ""), after.get(name, ""))
        for name in sorted(before.keys() | after.keys())  # `usage` has fields only if it is set
        if name != "cluster" and before.get(name, "") != after.get(name, "")
    )


def _as_texts(policy: Policy) -> dict[str, str]:
    filters = {
        name: [entity_filter.text for entity_filter in getattr(policy, name)]
        for name in ("scope", "protect")
    }
    return dict(_flatten(policy.as_json() | filters))


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field below `prefix`, and its value as text."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _as_text(name, value)


def _as_text(name: str, value: object) -> str:
    if value is None or value == []:
        return ""
    if name == "approval_valid_for":
        return f"{value:,} seconds"
    if isinstance(value, list):
        return "; ".join(part if isinstance(part, str) else _json(part) for part in value)
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
