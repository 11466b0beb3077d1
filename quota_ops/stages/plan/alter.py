"""plan, of an alter: the rows that a person typed, beside the cluster, checked by the guards."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

from quota_ops.desired.findings import find_near
from quota_ops.findings.cluster_rules import find_unknown_users
from quota_ops.findings.codes import MISSPELLED, make_finding
from quota_ops.findings.entity_rules import check_limit, check_names
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.finding import Finding
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.approval import Author
from quota_ops.model.plans.effect import Effect
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.guard_rules import find_unknown_policy, judge_alteration
from quota_ops.model.plans.plan import Plan, rank_by_risk
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.alteration import Alteration, Typed
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.rows import Key, Stored
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.run import Findings
from quota_ops.model.stored import from_json
from quota_ops.precedence.changed_limits import ANY_IP
from quota_ops.precedence.effects import find_write_effects
from quota_ops.precedence.resolution import find_shortest
from quota_ops.stages.plan import override_guards, refuse_unless_guards_pass
from quota_ops.stages.plan.effects import write_effects
from quota_ops.store.ledger import ledger
from quota_ops.store.places.parquet import from_rows, read_rows
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.run.files import ALTER, FINDINGS
from quota_ops.store.run.folder import RunFolder

_MOST_NAMED = 3
"""How many addresses are named that a host name may mean."""


def plan_alter(folder: RunFolder, cluster: Cluster, typed: Typed, allow: Mapping[str, str]) -> None:
    """Write the differences, plan.json, effects.json and findings.json, of the typed rows alone.

    `allow` and the errors are as of `plan_changes`; also raises Refused, and writes nothing, when a
    cleared address would leave another one without effect.
    """
    find_facts, stored = cluster.start_facts_query(), cluster.describe_values()
    folder.leave_name()
    verified, applied, trouble = Known.read(folder.records)
    writes = _list_writes(cluster.cluster_id, typed(stored), stored, verified)
    _refuse_lost_addresses(writes, stored, allow)
    effects = find_write_effects(((*key, value) for key, value in stored.items()), writes)
    write_effects(folder, effects)
    judged = [
        write
        for write in writes
        if write.changes_value and not _reveals_verified(write, effects.get(write.id), verified)
    ]
    risks = {row: effect.risk for row, effect in effects.items()}
    policy, alter = folder.policy(), folder.read(ALTER)
    guards = judge_alteration(judged, policy, applied, risks)
    if trouble is not None:
        guards += (find_unknown_policy(writes, trouble),)
    found = [*_find(writes, find_facts())]
    if len(entities := {row.entity for row in writes}) == 1:  # to compare more names takes long
        found += _find_misspelled(entities.pop(), {entity for entity, _ in stored})
    folder.write(FINDINGS, Findings(tuple(found)))
    folder.write_table(DIFFERENCES, _number_batches(writes))
    plan = Plan(
        policy=policy,
        commit=None,
        differences=tuple(sorted(folder.differences(), key=rank_by_risk)),
        guards=guards,
        desired=0,
        actual=len(stored),
        batches=len(folder.batches()),
        ledger=None,
        applied_policy=applied,
    )
    plan = override_guards(folder, plan, allow, Author(alter.by, alter.login))
    folder.leave_plan(plan)
    refuse_unless_guards_pass(plan)


def _find(writes: Iterable[Difference], facts: ClusterFacts) -> Iterator[Finding]:
    """Yield the findings that a plan would report for the names and values that are set."""
    limits = {row.id: row.target for row in writes if row.target is not None}
    names = dict.fromkeys(entity for entity, _ in limits)
    for name in names:
        yield from check_names(Entity.parse(name))
    yield from find_unknown_users(names, facts)
    for (entity, key), value in limits.items():
        yield from check_limit(entity, key, value)


def _find_misspelled(text: str, stored: Collection[str]) -> Iterator[Finding]:
    """Yield a finding for each name of an entity that no stored one has, and one nearly has."""
    for kind, name in Entity.parse(text).parts:
        alike = (other for other in stored if f"{kind}={name}" in other)
        is_stored = any((kind, name) in Entity.parse(other).parts for other in alike)
        if kind == IP or name is None or is_stored:
            continue
        alike = (other for other in stored if abs(len(other) - len(text)) <= 1)
        begin, part = f"{kind}={name[:1]}", (kind, name)
        parts = (found for other in alike if begin in other for found in Entity.parse(other).parts)
        names = {(of, other): None for of, other in parts if other} | {part: None}
        near = {found for pair in find_near(names) if part in pair for found in pair}
        for _, other in sorted(near - {part}):
            message = f"{kind} {name} is nearly {kind} {other}, which has a quota."
            yield make_finding(MISSPELLED, message, f"Did you mean {other}?", entity=text)


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
    trouble: str | None = None
    """Why the ledger, or its policy, may not be the last one; None if it is."""

    @classmethod
    def read(cls, records: ClusterStore) -> Self:
        """Return what a ledger has, and why it may not be the last; nothing if it is damaged."""
        try:
            known, trouble = ledger.read_with_doubt(records)
            applied = None if known.notes.policy is None else from_json(Policy, known.notes.policy)
        except (InvalidInput, ValueError) as error:
            return cls({}, None, error.message if isinstance(error, InvalidInput) else str(error))
        verified = (row for row in known.rows if row.state == ledger_edits.VERIFIED)
        return cls(
            {row.id: row.value for row in verified if row.value is not None}, applied, trouble
        )


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
        Difference(
            cluster_id,
            *row,
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


def _number_batches(writes: Sequence[Difference]) -> list[Difference]:
    """Return the rows with the numbers of their requests, by the same SQL as those of a plan.

    All rows of an entity are in one request, so for one entity no database starts: 80 ms of CPU.
    """
    if len({row.entity for row in writes}) == 1:
        numbers: dict[Key, int | None] = dict.fromkeys((row.id for row in writes), 1)
    else:
        from quota_ops.sql.embedded import number_batches  # DuckDB

        rows = read_rows(DIFFERENCES, number_batches(from_rows(DIFFERENCES, writes)))
        numbers = {row.id: row.batch for row in rows}
    numbered = (row._replace(batch=numbers[row.id]) for row in writes)
    return sorted(numbered, key=lambda row: (row.batch or 0, *row.id))
