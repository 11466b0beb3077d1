"""Who is held: looked up when the cluster is described, and again before every write."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from quota_ops.kafka.outcomes import all_of
from quota_ops.kafka.stored import Stored
from quota_ops.model.entity import Entity
from quota_ops.model.hold import Hold, hold_on, in_force
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.quota import same
from quota_ops.model.rows import BatchRow
from quota_ops.model.tables import ACTUAL, DESIRED, LEDGER
from quota_ops.store import holds
from quota_ops.store.run_folder import RunFolder


def holds_now(folder: Path) -> tuple[Hold, ...]:
    """The holds of a cluster that last at this moment; InvalidInput as `holds.read` does."""
    return in_force(holds.read(folder), datetime.now(UTC))


def held_entities(
    folder: RunFolder, cluster_id: str, lasting: Sequence[Hold]
) -> Iterator[tuple[str, str, str]]:
    """The rows of HOLDS: each entity that Git, the cluster or the ledger knows and a hold is on."""
    if not lasting:
        return
    sides = (folder.read_table(table) for table in (DESIRED, ACTUAL, LEDGER))
    texts = {text for side in sides for text in side["entity"].to_pylist()}
    for text in sorted(texts):
        hold = hold_on(lasting, Entity.parse(text))
        if hold is not None:
            yield cluster_id, text, hold.text


def without_held(
    number: int, rows: Sequence[BatchRow], stored: Stored, folder: Path
) -> tuple[tuple[BatchRow, ...], tuple[Outcome, ...]]:
    """The rows of a batch that nobody holds now, and the outcomes of those that somebody does.

    What the cluster has stored already as planned is no matter of a hold.
    """
    due = (row.entity for row in rows if not same(stored.get((row.entity, row.key)), row.after))
    on_hold = held_among(due, folder)
    outcomes = (
        all_of(number, [row for row in rows if row.entity == entity], Status.HELD, hold.text)
        for entity, hold in on_hold.items()
    )
    free = tuple(row for row in rows if row.entity not in on_hold)
    return free, tuple(one for some in outcomes for one in some)


def held_among(entities: Iterable[str], folder: Path) -> Mapping[str, Hold]:
    """Of some entities those that somebody holds now, and the hold on each."""
    lasting = holds_now(folder)
    found = {text: hold_on(lasting, Entity.parse(text)) for text in entities} if lasting else {}
    return {text: hold for text, hold in found.items() if hold is not None}
