"""Limits of the whole cluster in a review: both sides are divided by the same brokers."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from quota_ops.desired.expand.rates import divide_rates
from quota_ops.model.clusters.cluster_facts import NO_BROKERS
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.plans.placement import Placement, list_topics
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.quotas.tables import DECLARED, DESIRED
from quota_ops.model.runs.review import ClusterReview, Unjudged
from quota_ops.runs.run import Run
from quota_ops.stages.describe.rates import read_divisors, read_placement
from quota_ops.store.ledger import ledger
from quota_ops.store.run.folder import RunFolder

_FEW = 3
_REMEDY = "Let the job query the cluster: without it, only the brokers of earlier runs are known."


def read_declared(folder: RunFolder) -> dict[Key, DesiredRow]:
    """Return the rows that check read; limits of the whole cluster are not divided."""
    table = DECLARED if folder.has(DECLARED.file) else DESIRED
    return {row.id: row for row in folder.read_rows(table)}


def divide_by_cluster(run: Run, found: ClusterReview) -> ClusterReview:
    """Divide the limits of the merge base and the target as describe divided those of the branch.

    Raises ClusterTrouble.
    """
    sides = [side.rows.values() for side in (found.base, found.target) if side]
    rates = [row for rows in sides for row in rows if row.needs_brokers]
    if not rates:
        return found
    known = ledger.read(run.folder.records)
    topics = list_topics(row.topics for row in rates)
    placement = read_placement(run.connect(), run.folder.policy(), known.notes.brokers, topics)
    return _divide_sides(found, placement, read_divisors(known))


def divide_offline(run: Run, found: ClusterReview) -> ClusterReview:
    """Divide the limits of every side by the brokers that the last runs recorded.

    Limits whose brokers no run has recorded are left out; the review shows them as not judged.
    """
    declared = read_declared(run.folder)
    if not any(row.needs_brokers for row in _list_rows(found, declared)):
        return found
    known, before = NO_BROKERS, dict[Key, int]()
    with suppress(InvalidInput):
        last = ledger.read(run.folder.records)
        known, before = last.notes.brokers, dict(read_divisors(last))
    placement = Placement(known.ids, None)
    rows = _divide_known(declared.values(), placement, before)
    run.folder.write_table(DECLARED, list(rows.values()))
    divided = _divide_sides(found, placement, before)
    every = {row.id for row in _list_rows(found, declared)}
    left = sorted(every - {row.id for row in _list_rows(divided, rows)})
    if left:
        names = ", ".join(" ".join(key) for key in left[:_FEW])
        what = "some limits of the whole cluster were not divided"
        reason = Unjudged(what, f"by how many brokers is unknown: {names}", _REMEDY)
        divided = replace(divided, unjudged=(*divided.unjudged, reason))
    return divided


def _list_rows(found: ClusterReview, declared: Mapping[Key, DesiredRow]) -> list[DesiredRow]:
    sides = [declared, *(side.rows for side in (found.base, found.target) if side)]
    return [row for rows in sides for row in rows.values()]


def _divide_sides(
    found: ClusterReview, placement: Placement, before: Mapping[Key, int]
) -> ClusterReview:
    base, target = (
        files and files._replace(rows=_divide_known(files.rows.values(), placement, before))
        for files in (found.base, found.target)
    )
    return replace(found, base=base, target=target)


def _divide_known(
    rows: Iterable[DesiredRow], placement: Placement, before: Mapping[Key, int]
) -> dict[Key, DesiredRow]:
    """Return the rows with the share of each broker, without those that cannot be divided."""
    divided: dict[Key, DesiredRow] = {}
    for row in rows:
        with suppress(InvalidDesiredState):
            (divided[row.id],) = divide_rates([row], placement, before)
    return divided
