"""A one-off change until a given time: a hold on its entities, after which a run returns them.

The hold keeps runs from reverting the change before its end. From then on, Git applies again.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from quota_ops.desired.read import Desired
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.plans.policy import DriftPolicy
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LedgerRow
from quota_ops.runs.ownership import Attribution
from quota_ops.store.ledger import holds
from quota_ops.store.places.place import Place

_REMEDY = "Leave out --until, or declare the change in Git as an override with until."


def refuse_unless_returns(
    alterations: Iterable[Alteration], desired: Desired | None, known: Iterable[LedgerRow]
) -> None:
    """Raise InvalidInput for a change that no run would return by itself after its end."""
    if desired is None:
        raise InvalidInput("the files in Git are invalid, so no run returns it", _REMEDY)
    if desired.policy.drift is not DriftPolicy.REPAIR:
        drift = desired.policy.drift
        raise InvalidInput(f"cluster.yaml sets drift: {drift}, so no run returns it", _REMEDY)
    declared = {row.id: row for row in desired.rows}
    verified = {row.id: row.value for row in known if row.state == VERIFIED}
    for alteration in alterations:
        for key, _ in alteration.changes:
            row = declared.get(Key(alteration.entity.text, key))
            what = f"{key} of {alteration.entity}"
            if row is None:
                raise InvalidInput(f"Git declares no {what}, so no run returns it", _REMEDY)
            if not row.needs_brokers and not same(verified.get(row.id), row.value):
                why = f"{what} was not verified as {row.file}:{row.line} declares it"
                raise InvalidInput(f"{why}, so a guard would block its return", _REMEDY)


def hold_entities(
    folder: Place, entities: Sequence[Entity], until: datetime, attribution: Attribution
) -> None:
    """Hold exactly these entities until a time."""
    now = datetime.now(UTC).replace(microsecond=0)
    for entity in entities:
        parts = (
            FilterPart(kind, Match.DEFAULT if name is None else Match.EXACT, name)
            for kind, name in entity.parts
        )
        who = EntityFilter(tuple(parts))
        by, reason, login = attribution
        holds.add(folder, Hold(who, until, by, reason, now, login))
