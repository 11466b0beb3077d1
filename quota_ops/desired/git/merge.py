"""The merge of a branch with its target, before anybody makes it: what it declares."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.files import SHARED, is_read
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.review import BaseFiles, Unjudged

_REMEDY = "Merge the target branch into this one, and run the review again."
_FEW = 3


@dataclass(frozen=True, slots=True)
class Merge:
    """The clusters' files after a merge; `changed` are the paths that differ from the target.

    They and `conflicts` are paths from the desired state.
    """

    files: Mapping[str, BaseFiles]
    changed: tuple[str, ...]
    conflicts: tuple[str, ...] = ()

    def find_doubt(
        self, name: str, base: BaseFiles | None, head: BaseFiles | None, target: BaseFiles | None
    ) -> Unjudged | None:
        """Return why the changes from `base` to `head` are not those of the merge, if they are not.

        A merge goes line by line. It can drop, add or mix quotas, with or without several merge
        bases, and two valid sides can become invalid.
        """
        merged = self.files.get(name)
        if conflicts := [
            path for path in self.conflicts if path.partition("/")[0] in {name, SHARED}
        ]:
            what = "it conflicts with its target branch"
            return Unjudged(what, ", ".join(conflicts[:_FEW]), _REMEDY)
        if target is not None and target.invalid:
            what = "the files of its target branch are invalid"
            return Unjudged(what, target.invalid, f"Repair the target branch. {_REMEDY}")
        if merged is not None and merged.invalid:
            what = "merged with its target branch, the files are invalid"
            return Unjudged(what, merged.invalid, _REMEDY)
        if base is not None and base.invalid:
            return None  # the review reports an invalid merge base anyway
        ours, theirs = _find_changes(base, head), _find_changes(target, merged)
        after = _list_values(merged)
        other = {key for key, value in theirs.items() if key not in ours or ours[key] != value}
        other |= {key for key, value in ours.items() if after.get(key) != value}
        if not other:
            return None
        names = ", ".join(" ".join(key) for key in sorted(other)[:_FEW])
        more = f" and {len(other) - _FEW:,} more" if len(other) > _FEW else ""
        what = "merging it changes other values than this branch alone"
        return Unjudged(what, f"{names}{more}", _REMEDY)


def list_read(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of clusters that quota-ops reads, below the desired state."""
    parts = ((path, *path.partition("/")) for path in paths)
    return tuple(path for path, _, _, below in parts if below and is_read(below))


def _find_changes(before: BaseFiles | None, after: BaseFiles | None) -> dict[Key, Any]:
    """Return the values and settings that differ, as they are afterwards; None for none."""
    old, new = _list_values(before), _list_values(after)
    return {key: new.get(key) for key in old | new if old.get(key) != new.get(key)}


def _list_values(files: BaseFiles | None) -> dict[Key, Any]:
    """Return all values and settings; the name of the folder is none."""
    if files is None or files.policy is None:
        return {}
    values: dict[Key, Any] = {key: row.declared for key, row in files.rows.items()}
    settings = files.policy.as_json().items()
    return values | {
        Key(CLUSTER_YAML, name): value for name, value in settings if name != "cluster"
    }
