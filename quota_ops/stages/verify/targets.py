"""Which rows verify compares, and how many it does not since the run left them as they are."""

from collections.abc import Iterable, Mapping

from quota_ops.kafka.outcomes import unwritten
from quota_ops.model.difference import WRITES, Action, Difference
from quota_ops.model.rows import DesiredRow, Key
from quota_ops.model.tables import HOLDS
from quota_ops.stages.verify.brokers import Targets
from quota_ops.store.run_folder import APPLIED, RunFolder

_UNTOUCHED = frozenset({Action.REPORT, Action.HELD})


def find_targets(
    folder: RunFolder,
    desired: Mapping[Key, DesiredRow],
    differences: Iterable[Difference],
) -> tuple[Targets, int]:
    """Return the rows of this run less those that it left alone, and how many it left.

    What somebody holds may be changed by hand at any moment, so nobody is told what it should be.
    """
    held = set(folder.read_table(HOLDS)["entity"].to_pylist())
    targets: dict[Key, float | None] = {
        key: row.value for key, row in desired.items() if row.entity not in held
    }
    left = {key for key in desired if key[0] in held}
    not_written = unwritten(folder.outcomes(APPLIED))
    for row in differences:
        key = row.id
        if row.action in _UNTOUCHED or key in not_written:
            targets.pop(key, None)
            if key in desired or row.action in WRITES or row.action is Action.HELD:
                left.add(key)
        elif row.action in {Action.CLEAR, Action.FORGET}:
            targets[key] = None
    return targets, len(left)
