"""Outcomes of rows, one per entity, from what brokers answer and describe."""

from collections.abc import Iterable, Mapping, Sequence

from quota_ops.model.entity import Entity
from quota_ops.model.outcome import DONE, EntityAnswer, Outcome, Status
from quota_ops.model.rows import BatchRow, Key, StoredQuota

UNSETTLED = frozenset({"REQUEST_TIMED_OUT", "NOT_CONTROLLER", "UNKNOWN_SERVER_ERROR"})
"""Answers that do not say whether the write happened. Source: AlterClientQuotasRequest."""

SETTLED = "settled by describing"
"""What is said of a write without an answer that the cluster is seen to hold."""

RESENT = "sent again, as no answer came"
"""What is said of a write that was accepted at its second try: the first may still arrive."""

MOST_LINES = 20
"""Entities that an error lists."""


def outcomes_of(
    batch: int, rows: Iterable[BatchRow], answers: Iterable[EntityAnswer]
) -> tuple[Outcome, ...]:
    """A batch's outcomes, each answer matched by its entity: brokers answer in hash order.

    An entity without an answer is UNKNOWN.
    """
    by_entity = {answer.entity.text: answer for answer in answers}
    return tuple(
        _outcome(batch, entity, keys, by_entity.get(entity))
        for entity, keys in keys_by_entity(rows).items()
    )


def _outcome(
    batch: int, entity: str, keys: tuple[str, ...], answer: EntityAnswer | None
) -> Outcome:
    if answer is None:
        return Outcome(batch, entity, keys, Status.UNKNOWN, message="no answer for this entity")
    status = Status.ACCEPTED if answer.code == 0 else Status.REFUSED
    error = None if answer.code == 0 else answer.name
    return Outcome(batch, entity, keys, status, answer.code, error, answer.message or None)


def all_of(
    batch: int, rows: Iterable[BatchRow], status: Status, message: str | None
) -> tuple[Outcome, ...]:
    """The same outcome for every entity of these rows."""
    return tuple(
        Outcome(batch, entity, keys, status, message=message)
        for entity, keys in keys_by_entity(rows).items()
    )


def interrupted(
    batches: Mapping[int, Sequence[BatchRow]], done: Iterable[Outcome]
) -> tuple[Outcome, ...]:
    """The outcomes of the batches after those that are done, where a person stopped the sending.

    What the first of them came to is unknown; the others were not sent.
    """
    told = {one.batch for one in done}
    left = [number for number in batches if number not in told]
    return tuple(
        outcome
        for number in left
        for status in (Status.UNKNOWN if number == left[0] else Status.NOT_SENT,)
        for outcome in all_of(number, batches[number], status, "interrupted")
    )


def keys_by_entity(rows: Iterable[BatchRow]) -> dict[str, tuple[str, ...]]:
    """The keys that are changed on each entity."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.entity, []).append(row.key)
    return {entity: tuple(names) for entity, names in keys.items()}


def unwritten(outcomes: Iterable[Outcome]) -> set[Key]:
    """Entity and key of the rows that were surely not written."""
    written = DONE | {Status.UNKNOWN}
    return {
        Key(one.entity, key) for one in outcomes if one.status not in written for key in one.keys
    }


def with_answer(outcomes: Iterable[Outcome]) -> set[Key]:
    """Entity and key of the rows whose only request was answered: it was accepted."""
    once = (one for one in outcomes if one.status is Status.ACCEPTED and one.earlier is None)
    return {Key(one.entity, key) for one in once if one.message is None for key in one.keys}


def without_answer(outcomes: Iterable[Outcome]) -> set[Key]:
    """Entity and key of the rows of which a request was sent that nobody answered."""
    said = {SETTLED, RESENT}
    return {Key(one.entity, key) for one in outcomes if one.message in said for key in one.keys}


def listed(lines: Sequence[str], artefact: str) -> str:
    """The first lines, indented, and how many more there are in the artefact."""
    more = len(lines) - MOST_LINES
    last = [f"and {more:,} more, all in {artefact}"] if more > 0 else []
    return "\n".join(f"  {line}" for line in (*lines[:MOST_LINES], *last))


Stored = Mapping[Key, float]
"""What a cluster holds, by (entity, key)."""


def stored_of(described: Iterable[StoredQuota]) -> Stored:
    """Described rows by the text of their entity, and their key."""
    stored: dict[Key, float] = {}
    last: Entity | None = None
    text = ""
    for entity, key, value in described:
        if entity is not last:  # an entity's keys come one after the other
            last, text = entity, entity.text
        stored[Key(text, key)] = value
    return stored
