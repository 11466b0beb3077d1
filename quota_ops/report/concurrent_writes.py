"""Sentences about entities that other runs are writing at this moment."""

from collections.abc import Iterable, Iterator

from quota_ops.model.concurrent_write import ConcurrentWrite
from quota_ops.report.wording import shown


def concurrent_words(writes: Iterable[ConcurrentWrite]) -> Iterator[str]:
    """Yield a sentence for each run: what it is writing, and when to look again."""
    entities: dict[str, dict[str, bool]] = {}
    for one in writes:
        entities.setdefault(one.run, {})[one.entity] = one.sure
    for run, sure in entities.items():
        first, *others = sure
        verb = "is writing" if all(sure.values()) else "may be writing"
        whom = shown(first) + (f" and {len(others):,} more" if others else "")
        look = f"look again when it has ended (quota-ops show {run})"
        yield f"run {run} {verb} {whom} at this moment: {look}"
