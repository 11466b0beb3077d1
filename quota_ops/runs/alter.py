"""alter: a run whose desired rows a person typed, not YAML.

It does not change Git: a plan treats it as a change outside Git. The ledger remembers what it sends
until that can no longer arrive; no row becomes managed by it. With a time, its entities are held
until then, so that no run reverts it before; from then on, Git applies again.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from quota_ops.desired.export.accept import NewLimit
from quota_ops.desired.read import Desired
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.plans.policy import DriftPolicy, Policy
from quota_ops.model.plans.scope import Scope
from quota_ops.model.plans.strict_policy import combine_strictly
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, Stored
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.text import command
from quota_ops.stages.plan.alter import Known
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.run.files import ALTER
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

_UNTIL_REMEDY = "Leave out --until, or declare the change in Git as an override with until."


class Undo(NamedTuple):
    """An earlier alter that is undone: the name of its run, and what it wrote or may have."""

    run: str
    changes: tuple[Difference, ...]

    @classmethod
    def read(cls, earlier: RunFolder) -> Self:
        """Return the changes to undo.

        Raises Refused if it is not an alter, is running or wrote nothing.
        """
        state, run = RunState(earlier), earlier.about().run
        if not earlier.has(ALTER):
            raise Refused(
                f"run {run} is not an alter", f"To roll back a plan: {command('rollback', run)}"
            )
        if state.life is not None:
            raise Refused(
                f"run {run} has not recorded its end",
                "Wait until it has ended, or let the next run of the cluster record its end.",
            )
        rows = state.written | state.unknown
        changes = tuple(row for row in earlier.differences() if row.id in rows) if rows else ()
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


def _group(changes: Iterable[Difference]) -> tuple[Alteration, ...]:
    values: dict[str, list[tuple[str, float | None]]] = {}
    for row in changes:
        values.setdefault(row.entity, []).append((row.key, row.before))
    return tuple(Alteration(Entity.parse(name), tuple(keys)) for name, keys in values.items())


def refuse_protected(
    alterations: Iterable[Alteration], policy: Policy, records: ClusterStore
) -> None:
    """Raise Refused when cluster.yaml, or the one that was last applied, protects an entity."""
    scope = Scope(combine_strictly(Known.read(records).applied, policy))
    for alteration in alterations:
        if (met := scope.find_protection(alteration.entity)) is not None:
            where = "cluster.yaml" if met in policy.protect else "the last applied cluster.yaml"
            raise Refused(
                f"{alteration.entity} is protected: {where} lists {met.text} under protect, "
                "so quota-ops never sets or clears it",
                "Nothing was sent. Take it out of `protect` first, in a reviewed change.",
            )


def list_altered(folder: RunFolder) -> tuple[NewLimit, ...]:
    """Return the values that the cluster has since an alter, for Git to declare."""
    outcomes = RunState(folder).outcomes
    accepted = {outcome.entity for outcome in outcomes if outcome.status in DONE}
    if not accepted:
        return ()
    return tuple(
        NewLimit(row.id, row.after, declared=None, replaces_any=True)
        for row in folder.differences()
        if row.entity in accepted
    )


def refuse_unless_returns(
    alterations: Iterable[Alteration], desired: Desired | None, records: ClusterStore
) -> None:
    """Raise InvalidInput for a change that no run would return by itself after its end."""
    if desired is None:
        raise InvalidInput("the files in Git are invalid, so no run returns it", _UNTIL_REMEDY)
    if desired.policy.drift is not DriftPolicy.REPAIR:
        drift = desired.policy.drift
        raise InvalidInput(f"cluster.yaml sets drift: {drift}, so no run returns it", _UNTIL_REMEDY)
    declared = {row.id: row for row in desired.rows}
    known = Known.read(records)
    if known.trouble is not None:
        raise InvalidInput(
            f"{known.trouble}, so it is unknown whether a run returns the change",
            "Nothing was sent. Leave out --until, and hold the entities after the change: "
            "quota-ops hold. Then look at what the next plan does.",
        )
    for alteration in alterations:
        for key, _ in alteration.changes:
            row = declared.get(Key(alteration.entity.text, key))
            what = f"{key} of {alteration.entity}"
            if row is None:
                raise InvalidInput(f"Git declares no {what}, so no run returns it", _UNTIL_REMEDY)
            if not row.needs_brokers and not same(known.verified.get(row.id), row.value):
                why = f"{what} was not verified as {row.file}:{row.line} declares it"
                raise InvalidInput(f"{why}, so a guard would block its return", _UNTIL_REMEDY)
