"""The rows that verify compares: the value that every broker must store for each key."""

from collections.abc import Container, Iterable, Mapping

from quota_ops.model.quotas.difference import WRITES, Action, Difference
from quota_ops.model.quotas.rows import DesiredRow, Key, Targets

_UNTOUCHED = frozenset({Action.REPORT, Action.HELD})


def find_targets(
    desired: Mapping[Key, DesiredRow],
    differences: Iterable[Difference],
    held: Container[str],
    not_written: Container[Key],
) -> tuple[Targets, int]:
    """Return the rows that brokers must store, and how many rows the run skipped.

    The rows of `held` entities are not targets, because a person may change them at any moment.
    Neither are the rows in `not_written`, which the controller did not accept.
    """
    targets: dict[Key, float | None] = {
        key: row.value for key, row in desired.items() if row.entity not in held
    }
    skipped = {key for key in desired if key[0] in held}
    for row in differences:
        key = row.id
        if row.action in _UNTOUCHED or key in not_written:
            targets.pop(key, None)
            if key in desired or row.action in WRITES or row.action is Action.HELD:
                skipped.add(key)
        elif row.action in {Action.CLEAR, Action.FORGET}:
            targets[key] = None
    return targets, len(skipped)
