"""The outcome of each entity of a batch, from the broker's response or a description."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import Key, Keys


class EntityResponse(NamedTuple):
    """A broker's response for one entity: Kafka's error code (0 is NONE), and its message."""

    entity: Entity
    code: int
    name: str
    message: str | None


class Status(StrEnum):
    """What is known about the outcome of a write."""

    ACCEPTED = "accepted"
    """The broker accepted it (or would, when it only validated)."""
    ALREADY = "already"
    """The cluster stored it before, so nothing was sent."""
    REFUSED = "refused"
    """The broker rejected it; `message` is its reason."""
    STALE = "stale"
    """The cluster stores neither the planned nor the desired value, or the row was released."""
    UNKNOWN = "unknown"
    """No response arrived, and describing the cluster did not settle it."""
    HELD = "held"
    """A person held the entity after the plan was made: skipped, and no failure."""
    WAITING = "waiting"
    """A guard blocks the plan, and the run wrote only its repairs: skipped, and no failure."""
    NOT_SENT = "not_sent"
    """The run stopped before its turn."""


class Outcome(NamedTuple):
    """The outcome of one entity in one batch; `keys` are its rows.

    `earlier` is the status, ACCEPTED or UNKNOWN, that an earlier attempt of the run recorded for
    rows that this attempt did not write. None if no earlier attempt sent them. `may_arrive` is
    whether any attempt sent a request with these rows that may still arrive, whatever the status:
    it got no response, or one that leaves its outcome open.
    """

    batch: int
    entity: str
    keys: tuple[str, ...]
    status: Status
    code: int = 0
    error: str | None = None
    message: str | None = None
    earlier: Status | None = None
    may_arrive: bool = False

    @property
    def rows(self) -> tuple[Key, ...]:
        """The entity and key of each of its rows."""
        return tuple(Key(self.entity, key) for key in self.keys)

    @property
    def was_written(self) -> bool:
        """Whether the broker accepted these rows from any attempt of the run."""
        return Status.ACCEPTED in {self.status, self.earlier}

    @property
    def may_be_written(self) -> bool:
        """Whether the broker may have accepted these rows from the run, which is unknown."""
        return not self.was_written and Status.UNKNOWN in {self.status, self.earlier}


DONE = frozenset({Status.ACCEPTED, Status.ALREADY})
"""The statuses of rows whose planned value the cluster stores."""
AS_INTENDED = DONE | {Status.HELD, Status.WAITING}
"""The statuses of rows without a failure: written, or skipped because of a hold or a guard."""

ATTEMPTED = frozenset({Status.ACCEPTED, Status.REFUSED, Status.STALE, Status.UNKNOWN})
"""The statuses that the history lists as changes of a run, made or not."""

UNSETTLED = frozenset({"REQUEST_TIMED_OUT", "NOT_CONTROLLER", "UNKNOWN_SERVER_ERROR"})
"""Errors after which the write may still have happened. Source: AlterClientQuotasRequest."""

SETTLED = "settled by describing"
"""The message of a write that got no response and was confirmed by describing the cluster."""

RESENT = "sent again, because no response arrived"
"""The message of a write that was accepted at the second try; the first may still arrive."""

MOST_LINES = 20
"""The most lines that an error lists."""


def match_outcomes(
    batch: int, rows: Iterable[Difference], responses: Iterable[EntityResponse]
) -> tuple[Outcome, ...]:
    """Return a batch's outcomes, matching responses by entity because brokers sort them by hash.

    An entity without a response is UNKNOWN.
    """
    by_entity = {response.entity.text: response for response in responses}
    return tuple(
        _build_outcome(batch, entity, keys, by_entity.get(entity))
        for entity, keys in group_keys(rows).items()
    )


def _build_outcome(
    batch: int, entity: str, keys: tuple[str, ...], response: EntityResponse | None
) -> Outcome:
    if response is None:
        return Outcome(batch, entity, keys, Status.UNKNOWN, message="no response for this entity")
    status = Status.ACCEPTED if response.code == 0 else Status.REFUSED
    error = None if response.code == 0 else response.name
    return Outcome(batch, entity, keys, status, response.code, error, response.message or None)


def build_outcomes(
    batch: int,
    rows: Iterable[Difference],
    status: Status,
    message: str | None,
    *,
    may_arrive: bool = False,
) -> tuple[Outcome, ...]:
    """Return the same outcome for every entity of these rows."""
    return tuple(
        Outcome(batch, entity, keys, status, message=message, may_arrive=may_arrive)
        for entity, keys in group_keys(rows).items()
    )


def group_keys(rows: Iterable[Difference]) -> dict[str, tuple[str, ...]]:
    """Return the changed keys by entity."""
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.entity, []).append(row.key)
    return {entity: tuple(names) for entity, names in keys.items()}


def settle_unknown(
    outcomes: Iterable[Outcome], unequal: Keys, found: str, *, missing: str | None = None
) -> Iterator[Outcome]:
    """Yield outcomes; an unknown one is accepted if the cluster stores the targets of its rows.

    `unequal` are the rows that store another value. `found` is the message of what was accepted,
    `missing` that of what stays unknown; None keeps its message.
    """
    for outcome in outcomes:
        if outcome.status is not Status.UNKNOWN:
            yield outcome
        elif unequal.isdisjoint(outcome.rows):
            yield outcome._replace(status=Status.ACCEPTED, code=0, error=None, message=found)
        else:
            yield outcome._replace(message=missing or outcome.message)


def find_written(outcomes: Iterable[Outcome]) -> set[Key]:
    """Return the entity and key of the rows that the broker accepted from any attempt."""
    return {row for outcome in outcomes if outcome.was_written for row in outcome.rows}


def find_unwritten(outcomes: Iterable[Outcome]) -> set[Key]:
    """Return the entity and key of the rows that were certainly not written."""
    written = DONE | {Status.UNKNOWN}
    return {row for outcome in outcomes if outcome.status not in written for row in outcome.rows}


def find_open(outcomes: Iterable[Outcome]) -> set[Key]:
    """Return the entity and key of each row for which a request may still arrive."""
    return {row for outcome in outcomes if outcome.may_arrive for row in outcome.rows}


_FEW = 3
"""The most entities with the same result that an error lists one by one."""


def format_outcomes(outcomes: Iterable[Outcome], artifact: str) -> str:
    """Return one line for each entity, or one for many entities with the same result."""
    by_result: dict[str, list[str]] = {}
    for outcome in outcomes:
        result = ": ".join(filter(None, (outcome.status, outcome.error, outcome.message)))
        by_result.setdefault(result, []).append(outcome.entity)
    lines = []
    for result, entities in by_result.items():
        more = len(entities) - 1
        listed = entities if more < _FEW else [f"{entities[0]} and {more:,} more"]
        lines += [f"{entity}  {result}" for entity in listed]
    return format_lines(lines, artifact)


def format_lines(lines: Sequence[str], artifact: str) -> str:
    """Return the first lines, indented, and the number of further lines in the artifact."""
    more = len(lines) - MOST_LINES
    last = [f"and {more:,} more, all in {artifact}"] if more > 0 else []
    return "\n".join(f"  {line}" for line in (*lines[:MOST_LINES], *last))
