"""adopt and release: add rows to the ledger or remove them; the cluster is never written."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from quota_ops.desired.read import Desired
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import LedgerKey, ledger_key
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.runs.adoption import Adoption, find_adoptions
from quota_ops.model.runs.run import LedgerEdit
from quota_ops.model.text import counted
from quota_ops.stages.describe.disagreement import refuse_disagreement
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import ClusterStore
from quota_ops.store.run.files import ADOPTED, RELEASED
from quota_ops.store.run.folder import RunFolder


class Attribution(NamedTuple):
    """The author of a change without a plan, the reason, and the login of the process."""

    by: str
    reason: str
    login: str | None = None


def adopt_quotas(
    folder: RunFolder,
    connect: Callable[[], Cluster],
    records: ClusterStore,
    desired: Desired,
    *,
    wanted: EntityFilter | None,
    attribution: Attribution,
) -> tuple[Adoption, ...]:
    """Add stored quotas to the ledger, write adopted.json, and return the rows that were examined.

    `wanted` selects entities, as in `find_adoptions`. The intents of runs remain in the ledger.
    Raises InvalidInput if the cluster stores no quota of these entities; Refused if a run changes
    what the ledger has of them after they were described, or if a second response, of another
    broker if there is one, has other values: one may be of old metadata.
    """
    with folder.stage("adopt"):
        cluster, before = connect(), ledger.read(records).rows
        rows = find_adoptions(cluster.describe(), desired.rows, desired.policy, wanted)
        folder.leave_name()
        found = tuple(sorted(rows, key=lambda adoption: adoption.id))
        if wanted is not None and not found:
            raise _refuse_unknown("the cluster stores", wanted)
        adoptable = [
            _ledger_row(folder, cluster.cluster_id, adoption)
            for adoption in found
            if not adoption.refusal
        ]
        if adoptable:
            values = {row.id: row.value for row in found}
            refuse_disagreement(cluster, values, [row.id for row in adoptable])
        adopted: list[LedgerRow] = []

        def edit(known: dict[LedgerKey, LedgerRow]) -> None:
            keys = {row.id for row in adoptable}
            if changed := [row for row in {*before} ^ {*known.values()} if row.id in keys]:
                last = max(changed, key=lambda row: row.sequence or 0)
                raise Refused(
                    f"run {last.run} has changed {last.entity} {last.key} since it was described",
                    "Nothing was adopted. Run the command again when that run has ended.",
                )
            adopted[:] = ledger_edits.adopt(known, adoptable)

        file = ledger.change(records, edit)
        with _state_changed(adopted, "adopted"):
            folder.write(ADOPTED, LedgerEdit(*attribution, file, tuple(adopted)))
        managed = {row.id for row in adoptable} - {row.id for row in adopted}
        return tuple(adoption._replace(was_managed=adoption.id in managed) for adoption in found)


def release_quotas(
    folder: RunFolder, records: ClusterStore, wanted: EntityFilter | None, attribution: Attribution
) -> tuple[LedgerRow, ...]:
    """Remove rows from the ledger, write released.json, and return the removed rows.

    The ledger also forgets the remembered values of these rows. `wanted` None releases all rows.
    Raises InvalidInput if the ledger has no row of these entities.
    """
    released: list[LedgerRow] = []

    def edit(known: dict[LedgerKey, LedgerRow]) -> None:
        released[:] = [
            row
            for row in known.values()
            if wanted is None or wanted.accepts(Entity.parse(row.entity))
        ]
        if wanted is not None and not released:
            raise _refuse_unknown("the ledger has", wanted)
        for row in released:
            del known[ledger_key(row)]

    with folder.stage("release"):
        file = ledger.change(records, edit)
        with _state_changed(released, "released"):
            folder.write(RELEASED, LedgerEdit(*attribution, file, tuple(released)))
        return tuple(released)


def _refuse_unknown(place: str, wanted: EntityFilter) -> InvalidInput:
    return InvalidInput(
        f"{place} no quota of {wanted.text}", "Nothing was changed. Check the spelling."
    )


@contextmanager
def _state_changed(rows: Sequence[LedgerRow], word: str) -> Iterator[None]:
    """Add to an error of the store that the ledger was changed before it."""
    try:
        yield
    except InvalidInput as error:
        if not rows:
            raise
        changed = f"{counted(len(rows), 'row')} of the ledger {word}"
        raise Refused(f"{error.message}. Before that: {changed}", error.remedy) from error


def _ledger_row(folder: RunFolder, cluster_id: str, adoption: Adoption) -> LedgerRow:
    about, desired = folder.about(), adoption.declared
    return LedgerRow(
        cluster_id,
        adoption.entity,
        adoption.key,
        adoption.value,
        ledger_edits.VERIFIED,
        owner=desired and desired.owner,
        file=desired and desired.file,
        commit=about.commit,
        run=about.run,
        at=iso_utc(),
    )
