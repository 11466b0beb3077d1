"""alter: a one-off change, validated by the broker, sent, and recorded in a run folder.

It does not change Git: a plan treats it as a change outside Git. The ledger remembers what it sends
until that can no longer arrive; no row becomes managed by it. With a time, its entities are held
until then, so that no run reverts it before; from then on, Git applies again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic
from typing import NamedTuple, Self

from quota_ops.desired.export.accept import NewLimit
from quota_ops.desired.read import Desired
from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.errors import InvalidInput, QuotaOpsError, Refused
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard import Guard, GuardFinding, format_blocking
from quota_ops.model.plans.guard_rules import judge_alteration
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.policy import DriftPolicy, Policy
from quota_ops.model.plans.strict_policy import combine_strictly
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup, FilterIndex, FilterPart, Match
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import Batches, BatchRow, Key, LedgerRow, Stored, group_by_batch
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.outcome import DONE, Outcome, Status
from quota_ops.model.runs.run import Alter
from quota_ops.model.stored import from_json
from quota_ops.model.text import command, counted
from quota_ops.precedence.addresses import find_shortest
from quota_ops.precedence.changed_limits import ANY_IP
from quota_ops.precedence.effects import find_write_effects
from quota_ops.runs.approvals import record_overrides
from quota_ops.runs.dead_runs import settle_dead_runs
from quota_ops.runs.ownership import Attribution
from quota_ops.stages.apply.intent import record_alter, record_altered
from quota_ops.stages.apply.requests import send_noted, write_batches
from quota_ops.stages.plan.effects import write_effects
from quota_ops.stages.report.end_record import find_audit_connection
from quota_ops.stages.validate import validate_batches
from quota_ops.stages.verify import verify_alteration
from quota_ops.store.ledger import holds, ledger
from quota_ops.store.places.parquet import from_rows, read_rows
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.run.attempt import Attempt, state_sent
from quota_ops.store.run.files import ALTER, APPLIED, VALIDATED
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.marks import at_work
from quota_ops.store.run.state import RunState

_UNTIL_REMEDY = "Leave out --until, or declare the change in Git as an override with until."

_MOST_NAMED = 3
"""How many addresses are named that a host name may mean."""
_FRESH = 1.0
"""Seconds after which a row is described again before it is sent."""


class Altered(NamedTuple):
    """The rows, the outcome of each entity, the guards that blocked, and why nothing was sent.

    A guard that was overridden has the reason in `allowed`. `refusal` is None when the rows were
    sent, or, with validate-only, could be sent. `unverified` is why a broker may store another
    value; None if every broker returned what was written, or nothing was.
    """

    rows: tuple[BatchRow, ...]
    outcomes: tuple[Outcome, ...]
    guards: tuple[GuardFinding, ...]
    refusal: Refused | None
    unverified: QuotaOpsError | None = None


class Undo(NamedTuple):
    """An earlier alter that is undone: the name of its run, and what it wrote or may have."""

    run: str
    changes: tuple[BatchRow, ...]

    @classmethod
    def read(cls, earlier: RunFolder) -> Self:
        """Return the changes to undo.

        Raises Refused if it is not an alter, is running or wrote nothing.
        """
        state, run = RunState(earlier), earlier.about().run
        if state.alter is None:
            raise Refused(
                f"run {run} is not an alter", f"To roll back a plan: {command('rollback', run)}"
            )
        if state.life is not None:
            raise Refused(
                f"run {run} has not recorded its end",
                "Wait until it has ended, or let the next run of the cluster record its end.",
            )
        rows = state.written | state.unknown
        changes = tuple(row for row in state.alter.changes if row.id in rows)
        if not changes:
            raise Refused(f"run {run} changed nothing, so there is nothing to undo")
        return cls(run, changes)

    @property
    def alterations(self) -> tuple[Alteration, ...]:
        """The values before the changes."""
        return _group(self.changes)

    def select(self, stored: Stored) -> tuple[Alteration, ...]:
        """Return the rows that still have the value that the alter set.

        Raises Refused if all of them have changed since.
        """
        still = [row for row in self.changes if same(stored.get(row.id), row.after)]
        if not still:
            raise Refused(
                f"the cluster no longer has the values that run {self.run} set",
                "Nothing was written. Set the values that you want: quota-ops alter --names ...",
            )
        return _group(still)


def _group(changes: Iterable[BatchRow]) -> tuple[Alteration, ...]:
    values: dict[str, list[tuple[str, float | None]]] = {}
    for row in changes:
        values.setdefault(row.entity, []).append((row.key, row.before))
    return tuple(Alteration(Entity.parse(name), tuple(keys)) for name, keys in values.items())


def refuse_protected(
    alterations: Iterable[Alteration], policy: Policy, records: ClusterStore
) -> None:
    """Raise Refused when cluster.yaml, or the one that was last applied, protects an entity."""
    protected = FilterIndex(combine_strictly(Known.read(records).applied, policy).protect)
    for alteration in alterations:
        if (met := protected.find_match(alteration.entity)) is not None:
            where = "cluster.yaml" if met in policy.protect else "the last applied cluster.yaml"
            raise Refused(
                f"{alteration.entity} is protected: {where} lists {met.text} under protect, "
                "so quota-ops never sets or clears it",
                "Nothing was sent. Take it out of `protect` first, in a reviewed change.",
            )


def alter_quotas(
    folder: RunFolder,
    cluster: Cluster,
    alterations: Iterable[Alteration],
    attribution: Attribution,
    *,
    records: ClusterStore,
    policy: Policy,
    allow: Sequence[str] = (),
    undo: Undo | None = None,
    validate_only: bool,
    hold: Callable[[], None] = lambda: None,
    find_audit: Callable[[str], Connection] = find_audit_connection,
) -> Altered:
    """Validate the changes and, unless `validate_only`, send them if the broker accepts them all.

    Nothing is sent when a guard blocks that `allow` does not name, or when a row has changed since
    it was described. A refusal is recorded as the end of the stage apply. `hold` is called just
    before the changes are sent. Every broker is read back, as after a plan. With `undo`, only rows
    are restored that still have the value which that alter set; Refused if there are none.
    """
    began = monotonic()
    batches, outcomes = record_and_validate(
        folder,
        cluster,
        alterations,
        attribution,
        allow=allow,
        policy=policy,
        records=records,
        undo=undo,
    )
    guards = folder.read(ALTER).guards
    refusal = _find_refusal(outcomes, guards)
    rows = tuple(row for batch in batches.values() for row in batch)
    unverified = None
    if not validate_only:
        if refusal is None:
            record_overrides(folder, attribution, guards)
            with at_work(folder.place):
                settle_dead_runs(folder, cluster, find_audit)
            if monotonic() - began > _FRESH:
                refusal = _find_change(rows, cluster.describe_values())
        if refusal is None:
            hold()
            outcomes = send_batches(folder, cluster, batches, records)
            unverified = _read_back(folder, cluster, records)
        else:
            with suppress(Refused), folder.stage("apply"):
                raise refusal
    return Altered(rows, outcomes, guards, refusal, unverified)


def _read_back(folder: RunFolder, cluster: Cluster, records: ClusterStore) -> QuotaOpsError | None:
    """Write verification.json; return why not every broker stores what was written, or None."""
    try:
        with folder.stage("verify"):
            verify_alteration(folder, cluster, records)
    except QuotaOpsError as error:
        return error
    return None


def _find_refusal(outcomes: Sequence[Outcome], guards: Sequence[GuardFinding]) -> Refused | None:
    if refused := sum(outcome.status is not Status.ACCEPTED for outcome in outcomes):
        return Refused(
            f"{refused:,} of {counted(len(outcomes), 'entity')} would be rejected",
            "Nothing was written.",
        )
    if blocking := [guard for guard in guards if guard.allowed is None]:
        return Refused(*format_blocking(blocking))
    return None


def _find_change(rows: Iterable[BatchRow], stored: Stored) -> Refused | None:
    """Return why changes are not sent: their rows have other values than before; None if not."""
    changed = [row for row in rows if not same(stored.get(row.id), row.before)]
    if not changed:
        return None
    first = changed[0]
    now, before = (format_limit(first.key, value) for value in (stored.get(first.id), first.before))
    return Refused(
        f"{first.entity} {first.key} has changed since it was described: {before} -> {now}",
        "Nothing was written. Run the command again: it shows what the change is now.",
    )


def record_and_validate(
    folder: RunFolder,
    cluster: Cluster,
    alterations: Iterable[Alteration],
    attribution: Attribution,
    *,
    allow: Sequence[str],
    policy: Policy,
    records: ClusterStore,
    undo: Undo | None,
) -> tuple[Batches, tuple[Outcome, ...]]:
    """Write alter.json, the effects and validated.json; return the batches and the outcomes."""
    with folder.stage("validate"):
        stored = cluster.describe_values()
        alterations = undo.select(stored) if undo else alterations
        verified, applied = Known.read(records)
        writes = _list_writes(cluster.cluster_id, alterations, stored, verified)
        _refuse_lost_addresses(writes, stored, allow)
        batches = _number_batches(writes)
        effects = find_write_effects(((*key, value) for key, value in stored.items()), writes)
        write_effects(folder, effects)
        judged = [
            write
            for write in writes
            if not same(write.before, write.target)
            and not _reveals_verified(write, effects.get(write.id), verified)
        ]
        risks = {row: effect.risk for row, effect in effects.items()}
        guards = tuple(
            replace(guard, allowed=attribution.reason if guard.guard in allow else None)
            for guard in judge_alteration(judged, policy, applied, risks)
        )
        changes = tuple(row for rows in batches.values() for row in rows)
        folder.write(ALTER, Alter(*attribution, tuple(allow), guards, changes))
        outcomes = validate_batches(cluster, batches)
        folder.leave_outcomes(VALIDATED, outcomes)
        return batches, outcomes


def _refuse_lost_addresses(
    writes: Iterable[Difference], stored: Stored, allow: Collection[str]
) -> None:
    """Raise Refused if a cleared spelling of an address leaves its shortest one without effect.

    A host name may be any address: a person may know that none of those stored is meant.
    """
    clears = {row.id for row in writes if row.target is None and row.before is not None}
    left = stored.keys() - clears
    for entity, key in clears:
        shortest = find_shortest(entity) or entity
        is_host = shortest == entity and find_shortest(entity) is None and entity.startswith("ip=")
        others = [name for name, of in sorted(left) if of == key and find_shortest(name)]
        if is_host and entity != ANY_IP and others and Guard.UNLIMITED not in allow:
            named = ", ".join(others[:_MOST_NAMED]) + (", ..." if others[_MOST_NAMED:] else "")
            raise Refused(
                f"brokers may resolve {entity} to an address with a {key} of its own ({named}): "
                "once it is cleared, they do not apply that either, although they store it",
                f"Nothing was sent. Clear {key} of this address first, then of {entity} with "
                f"--allow {Guard.UNLIMITED}, and then set that of the address again.",
            )
        if (other := Key(shortest, key)) in stored and shortest != entity and other not in clears:
            raise Refused(
                f"{entity} is another spelling of {shortest}: once it is cleared, brokers do not "
                f"apply {shortest} {key} either, although they store it",
                f"Nothing was sent. Clear {shortest} {key} first, then {entity}, and then set "
                f"{shortest} {key} again.",
            )


class Known(NamedTuple):
    """What the ledger has: the values that runs verified, and the policy that was applied last."""

    verified: Stored
    applied: Policy | None

    @classmethod
    def read(cls, records: ClusterStore) -> Self:
        """Return what a ledger has; nothing if it is damaged or newer, which stops no alter."""
        try:
            known = ledger.read(records)
            applied = None if known.policy is None else from_json(Policy, known.policy)
        except (InvalidInput, ValueError):
            return cls({}, None)
        verified = (row for row in known.rows if row.state == ledger_edits.VERIFIED)
        return cls({row.id: row.value for row in verified if row.value is not None}, applied)


def _reveals_verified(write: Difference, effect: Effect | None, verified: Stored) -> bool:
    """Return whether it only removes an unmanaged quota that came before verified ones."""
    if effect is None:
        return False
    changed = [limits for limits in effect.classes if limits.before != limits.after]
    return (
        write.target is None
        and write.verified is None
        and not effect.between
        and all(
            limits.after is not None
            and verified.get(Key(limits.after.entity, write.key)) == limits.after.value
            for limits in changed
        )
    )


def _list_writes(
    cluster_id: str, alterations: Iterable[Alteration], stored: Stored, verified: Stored
) -> tuple[Difference, ...]:
    """Return the changes as differences of a plan, for the guards and the batches."""
    return tuple(
        Difference.of_values(
            (cluster_id, *row),
            Kind.UNMANAGED,
            Action.CLEAR if value is None else Action.SET,
            before=stored.get(row),
            after=value,
            verified=verified.get(row),
        )
        for alteration in alterations
        for key, value in alteration.changes
        for row in [Key(alteration.entity.text, key)]
    )


def _number_batches(writes: Sequence[Difference]) -> Batches:
    """Return the writes in batches, numbered by the same SQL as those of a plan."""
    from quota_ops.sql.embedded import number_batches  # noqa: PLC0415 - DuckDB

    rows = read_rows(DIFFERENCES, number_batches(from_rows(DIFFERENCES, writes)))
    numbers = {row.id: row.batch for row in rows}
    changes = (row._replace(batch=numbers[row.id]).change for row in writes)
    return group_by_batch(sorted(filter(None, changes)))


def list_altered(folder: RunFolder) -> tuple[NewLimit, ...]:
    """Return the values that the cluster has since an alter, for Git to declare."""
    accepted = {outcome.entity for outcome in folder.outcomes(APPLIED) if outcome.status in DONE}
    return tuple(
        NewLimit(row.id, row.after, declared=None, replaces_any=True)
        for row in folder.read(ALTER).changes
        if row.entity in accepted
    )


def send_batches(
    folder: RunFolder, cluster: Cluster, batches: Batches, records: ClusterStore
) -> tuple[Outcome, ...]:
    """Write applied.json, and return the outcome of each entity; stop after an unknown one.

    The ledger remembers what is sent, as for a plan. A value that is already stored is sent too:
    the broker that was read may lag behind.
    """
    attempt = Attempt(folder)
    altered = [row for rows in batches.values() for row in rows]

    def write(number: int, rows: Sequence[BatchRow]) -> tuple[Outcome, ...]:
        return send_noted(attempt, cluster, number, rows, {}, send=cluster.apply)[0]

    def record() -> None:
        record_altered(folder, altered, attempt.done, records)
        folder.leave_outcomes(APPLIED, tuple(attempt.done))

    with at_work(folder.place), folder.stage("apply"):
        record_alter(folder, altered, records)
        trouble = write_batches(attempt, batches, write, record)
        if isinstance(trouble, InvalidInput):
            raise state_sent(trouble, attempt.done, folder.place)
        return tuple(attempt.done)


def refuse_unless_returns(
    alterations: Iterable[Alteration], desired: Desired | None, known: Iterable[LedgerRow]
) -> None:
    """Raise InvalidInput for a change that no run would return by itself after its end."""
    if desired is None:
        raise InvalidInput("the files in Git are invalid, so no run returns it", _UNTIL_REMEDY)
    if desired.policy.drift is not DriftPolicy.REPAIR:
        drift = desired.policy.drift
        raise InvalidInput(f"cluster.yaml sets drift: {drift}, so no run returns it", _UNTIL_REMEDY)
    declared = {row.id: row for row in desired.rows}
    verified = {row.id: row.value for row in known if row.state == VERIFIED}
    for alteration in alterations:
        for key, _ in alteration.changes:
            row = declared.get(Key(alteration.entity.text, key))
            what = f"{key} of {alteration.entity}"
            if row is None:
                raise InvalidInput(f"Git declares no {what}, so no run returns it", _UNTIL_REMEDY)
            if not row.needs_brokers and not same(verified.get(row.id), row.value):
                why = f"{what} was not verified as {row.file}:{row.line} declares it"
                raise InvalidInput(f"{why}, so a guard would block its return", _UNTIL_REMEDY)


def hold_entities(
    folder: Place, entities: Sequence[Entity], until: datetime, attribution: Attribution
) -> None:
    """Hold exactly these entities until a time; a hold that lasts longer stays."""
    now = datetime.now(UTC).replace(microsecond=0)
    longer: frozenset[EntityFilter | EntityGroup] = frozenset()
    with suppress(InvalidInput):  # of a damaged hold, which the next run refuses
        longer = frozenset(hold.who for hold in holds.holds_now(folder) if hold.until > until)
    for entity in entities:
        parts = (
            FilterPart(kind, Match.DEFAULT if name is None else Match.EXACT, name)
            for kind, name in entity.parts
        )
        who = EntityFilter(tuple(parts))
        by, reason, login = attribution
        if who not in longer:
            holds.add(folder, Hold(who, until, by, reason, now, login))
