"""alter: a one-off change, asked of the broker first, sent, and kept in a run folder.

It is no part of what Git says: the ledger does not learn of it, and a plan sees it as any change
behind Git's back.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from quota_ops.frames.text import MAX_BYTES, MAX_KEYS
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.alteration import Alteration, alterations
from quota_ops.model.errors import ClusterTrouble, NoAnswer, Refused
from quota_ops.model.filter import EntityFilter
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.rows import BatchRow
from quota_ops.run_folder import ALTER, APPLIED, VALIDATED, RunFolder
from quota_ops.run_json import number
from quota_ops.stages.outcomes import UNSETTLED, all_of, outcomes_of

Batch = tuple[BatchRow, ...]


def refuse_protected(asked: Iterable[Alteration], protect: Iterable[EntityFilter]) -> None:
    """Raise Refused when an entity is one that cluster.yaml protects."""
    filters = tuple(protect)
    for one in asked:
        if (met := next((each for each in filters if each.accepts(one.entity)), None)) is not None:
            raise Refused(
                f"{one.entity} is protected: cluster.yaml says that {met.text} is never set and "
                "never cleared",
                "Nothing was sent. Take it out of `protect` first, in a reviewed change.",
            )


def ask(
    folder: RunFolder, cluster: Cluster, asked: Iterable[Alteration], by: str
) -> tuple[tuple[Batch, ...], tuple[Outcome, ...]]:
    """Leave alter.json and validated.json; the rows in batches, and what the broker would say."""
    with folder.stage("validate"):
        stored = cluster.stored()
        batches = tuple(
            tuple(
                BatchRow(cluster.cluster_id, at, entity, key, stored.get((entity, key)), value)
                for entity, changes in sorted((one.entity.text, one.changes) for one in batch)
                for key, value in changes
            )
            for at, batch in enumerate(_cut(asked), start=1)
        )
        folder.write_json(
            ALTER, {"by": by, "changes": [_row_json(row) for one in batches for row in one]}
        )
        outcomes = tuple(
            outcome
            for at, rows in enumerate(batches, start=1)
            for outcome in outcomes_of(at, rows, cluster.validate(alterations(rows)))
        )
        folder.leave_outcomes(VALIDATED, outcomes)
        return batches, outcomes


def send(folder: RunFolder, cluster: Cluster, batches: Sequence[Batch]) -> tuple[Outcome, ...]:
    """Leave applied.json; what became of each entity. After an unknown one nothing more is sent."""
    with folder.stage("apply"):
        outcomes: list[Outcome] = []
        trouble: str | None = None
        for at, rows in enumerate(batches, start=1):
            if trouble is not None:
                outcomes += all_of(at, rows, Status.NOT_SENT, trouble)
                continue
            answered = _send(cluster, at, rows)
            outcomes += answered
            left = [one for one in answered if one.status in {Status.UNKNOWN, Status.NOT_SENT}]
            trouble = left[0].message if left else None
        folder.leave_outcomes(APPLIED, tuple(outcomes))
        return tuple(outcomes)


def _send(cluster: Cluster, at: int, rows: Batch) -> tuple[Outcome, ...]:
    told = partial(all_of, at, rows)
    try:
        answered = outcomes_of(at, rows, cluster.apply(alterations(rows)))
    except NoAnswer as error:
        answered = told(Status.UNKNOWN, error.message)
    except ClusterTrouble as error:
        return told(Status.NOT_SENT, error.message)
    open_ones = {
        one.entity for one in answered if one.status is Status.UNKNOWN or one.error in UNSETTLED
    }
    if not open_ones:
        return answered
    from quota_ops.stages.settle import settle  # noqa: PLC0415 - tenacity, rarely needed

    unsettled = [row for row in rows if row.entity in open_ones]
    settled, _ = settle(cluster, at, unsettled, {})
    return (*(one for one in answered if one.entity not in open_ones), *settled)


def _cut(asked: Iterable[Alteration]) -> Iterable[list[Alteration]]:
    """The alterations in lists that a broker takes at once, an entity in exactly one."""
    batch: list[Alteration] = []
    keys = size = 0
    for one in asked:
        more = sum(len(one.entity.text.encode()) + len(key) + 64 for key, _ in one.changes)
        if batch and (keys + len(one.changes) > MAX_KEYS or size + more > MAX_BYTES):
            yield batch
            batch, keys, size = [], 0, 0
        batch.append(one)
        keys, size = keys + len(one.changes), size + more
    yield batch


def _row_json(row: BatchRow) -> dict[str, object]:
    return {
        "entity": row.entity,
        "key": row.key,
        "before": number(row.before),
        "after": number(row.after),
    }
