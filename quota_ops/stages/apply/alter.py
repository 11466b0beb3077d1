"""apply, of an alter: send what a person typed, if the cluster is still as the plan found it.

It shares the write loop of a plan. What differs is on purpose: a value that is already stored is
sent too, because the broker that was read may lag behind; and no claim, hold, pause or release
stops it, because a person runs it for this very change.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.moment import uptime
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.ledger_edits import ALTERED
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup, exactly
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import Stored
from quota_ops.model.runs.outcome import EntityResponse, Outcome
from quota_ops.model.runs.run import Alter
from quota_ops.stages.apply import raise_unless_done
from quota_ops.stages.apply.intent import record_intents, withdraw_intents
from quota_ops.stages.apply.requests import OLDEST, refuse_old, send_noted, write_batches
from quota_ops.store.ledger import holds
from quota_ops.store.places.place import Place
from quota_ops.store.run.attempt import Attempt
from quota_ops.store.run.files import ALTER, APPLIED
from quota_ops.store.run.folder import RunFolder

_log = logging.getLogger(__name__)


def apply_alter(folder: RunFolder, cluster: Cluster) -> None:
    """Hold the entities of an alter until its time, send its rows, and write applied.json.

    The ledger remembers what is sent, as for a plan; that it cannot be read or written is logged,
    and stops no alter. Raises Refused, and sends nothing, when a row has changed since it was
    described; like `apply_plan` when an entity did not end as planned.
    """
    alter, plan, attempt = folder.read(ALTER), folder.plan(), Attempt(folder)
    entities = [*map(Entity.parse, dict.fromkeys(row.entity for row in plan.writes))]
    only = entities[0] if len(entities) == 1 else None
    stored: Stored = cluster.describe_values(None, None, only)
    _refuse_changed(plan.writes, stored)
    if alter.until is not None:
        _hold_entities(folder.records.holds, entities, alter.until, alter)
    failed = _edit_ledger(partial(record_intents, folder, plan, stored, state=ALTERED))

    def send(alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        refuse_old(cluster)
        return cluster.apply(alterations)

    def write(number: int, rows: Sequence[Difference]) -> tuple[Outcome, ...]:
        nonlocal stored
        if uptime() > cluster.described_at + OLDEST / 2:
            stored = cluster.describe_values(None, None, only)
        _refuse_changed(rows, stored)
        outcomes, stored = send_noted(attempt, cluster, number, rows, stored, send=send)
        return outcomes

    def record() -> None:
        targets = {row.id: row.target for row in plan.writes}
        _edit_ledger(partial(withdraw_intents, folder, attempt.done, targets), known=failed)
        folder.leave_outcomes(APPLIED, tuple(attempt.done))

    trouble = write_batches(attempt, folder.batches(), write, record)
    retry = "Run the command again for these: sending a value twice does no harm."
    raise_unless_done(attempt.done, trouble, retry, remedy=retry)


def _edit_ledger(edit: Callable[[], object], known: str | None = None) -> str | None:
    """Edit the ledger, and return why that failed; it is logged, unless that is `known` already."""
    try:
        edit()
    except InvalidInput as error:
        if error.message != known:
            why = "runs may not know that this alter sent these values, if they arrive late"
            _log.warning("%s: %s", why, error.message)
        return error.message
    return None


def _refuse_changed(rows: Iterable[Difference], stored: Stored) -> None:
    """Raise Refused if the value of a row has changed since the plan."""
    for row in rows:
        if not same(stored.get(row.id), row.before):
            now, before = (
                format_limit(row.key, value) for value in (stored.get(row.id), row.before)
            )
            raise Refused(
                f"{row.entity} {row.key} has changed since it was described: {before} -> {now}",
                "Nothing was written. Run the command again: it shows what the change is now.",
            )


def _hold_entities(
    folder: Place, entities: Iterable[Entity], until: datetime, alter: Alter
) -> None:
    """Hold exactly these entities until a time; a hold that lasts longer stays."""
    now = datetime.now(UTC).replace(microsecond=0)
    longer: frozenset[EntityFilter | EntityGroup] = frozenset()
    with suppress(InvalidInput):  # of a damaged hold, which the next run refuses
        longer = frozenset(hold.who for hold in holds.holds_now(folder) if hold.until > until)
    for who in map(exactly, entities):
        if who not in longer:
            holds.add(folder, Hold(who, until, alter.by, alter.reason, now, alter.login))
