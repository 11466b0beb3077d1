"""verify: read back until every broker agrees or a deadline passes; write the ledger."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from shlex import quote
from uuid import uuid4

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.outcomes import find_acknowledged, find_unacknowledged
from quota_ops.model import ledger_edits
from quota_ops.model.difference import Action, Difference
from quota_ops.model.errors import Refused
from quota_ops.model.memory import CLEARED, SUPERSEDED, LedgerKey, forget, forget_answered, remember
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Status
from quota_ops.model.progress import SILENT, Progress
from quota_ops.model.registration import KnownBrokers
from quota_ops.model.rollback import Rollback
from quota_ops.model.rows import DesiredRow, Key, LedgerRow
from quota_ops.model.tables import DESIRED
from quota_ops.model.verification import (
    BOOTSTRAP,
    BrokerAnswer,
    RowVerdict,
)
from quota_ops.stages.apply.intent import find_unarrived
from quota_ops.stages.describe import add_absent_brokers
from quota_ops.stages.verify.brokers import (
    Targets,
    find_targets,
    find_wrong_rows,
    query_brokers,
    raise_unless_agreed,
)
from quota_ops.stages.verify.earlier_values import describe_late_writes, refuse_returned
from quota_ops.stages.verify.record import compute_applied_digest, find_verified
from quota_ops.store import ledger
from quota_ops.store.ledger_notes import known_brokers
from quota_ops.store.parquet import to_rows
from quota_ops.store.place import Place
from quota_ops.store.run_folder import APPLIED, METADATA, PLAN, ROLLBACK, VERIFIED, RunFolder
from quota_ops.store.run_json import verification_json
from quota_ops.store.succession import why_lost, why_overtaken


def compute_deadline(rows: int) -> float:
    """How many seconds brokers are given to show `rows` stored values.

    Metadata is applied at a cost that grows with the state: milliseconds on a small cluster,
    half a minute after 100,000 changes.
    """
    return 10.0 + rows / 1000


def verify_cluster(
    folder: RunFolder, cluster: Cluster, ledger_folder: Place, progress: Progress = SILENT
) -> tuple[RowVerdict, ...]:
    """Leave verification.json; the rows that are not as they should be.

    In a run that applied, rows that every answering broker holds enter the ledger as verified.
    Raises Refused when a row differs, a broker does not answer by the deadline, at once when a
    later run applies, or, without a plan, when a cleared row is there again; Unreachable when no
    broker answers; WrongCluster when an address leads to another cluster.
    """
    found = folder.differences() if folder.has("differences.parquet") else ()
    differences = found if folder.has(PLAN) else ()  # without a plan nothing is left alone
    desired = {row.id: row for row in map(DesiredRow._make, to_rows(folder.read_table(DESIRED)))}
    targets, left = find_targets(folder, desired, differences)
    written = compute_applied_digest(folder)
    metadata = cluster.start_metadata_query()

    def is_overtaken() -> bool:
        found = ledger.read(ledger_folder)
        return folder.has(APPLIED) and why_overtaken(folder, found, ledger_folder) is not None

    stored, brokers = query_brokers(
        *(cluster, targets, compute_deadline(len(targets)), progress, _last_written(folder)),
        is_overtaken=is_overtaken,
        left=left,
    )
    policy, known = folder.policy(), known_brokers(ledger.last(ledger_folder).table)
    through = min(brokers, key=lambda one: (not one.agrees, one.behind is None))
    image, registered = add_absent_brokers(
        metadata(), cluster, policy, known, BOOTSTRAP if through.bootstrap else through.broker
    )
    if not through.bootstrap:
        brokers = (*brokers, *map(BrokerAnswer.of_absent, image.missed))
    wrongs = tuple(find_wrong_rows(targets, stored))
    wrong = {one.id for one in wrongs}
    overtaken = None
    if folder.has(APPLIED) and stored:
        verified = {row: value for row, value in targets.items() if row not in wrong}
        live = [one.id for one in cluster.brokers]
        noted = known.after(folder.about()["run"], live, registered, image.absent)
        overtaken = _record(folder, ledger_folder, verified, desired, differences, brokers=noted)
    count = len(targets) - len(wrongs)
    found_now = verification_json(brokers, wrongs, count, written)
    folder.write_json(VERIFIED, {"attempt": uuid4().hex, **found_now})
    folder.write_json(METADATA, image.as_json())
    if overtaken is not None:
        raise Refused(overtaken, "The later run decides now. How it ended: quota-ops runs")
    raise_unless_agreed(brokers, wrongs, describe_late_writes(found), _command(folder))
    if not folder.has(PLAN):
        refuse_returned(found)
    return wrongs


def _command(folder: RunFolder) -> str:
    """The command that verifies a run, or a cluster without one, once more."""
    what = f"--run {quote(str(folder.place))}" if folder.has(APPLIED) else folder.about()["cluster"]
    return f"quota-ops verify {what}"


def _last_written(folder: RunFolder) -> str | None:
    """An entity of the last batch of which something was written."""
    outcomes = reversed(folder.outcomes(APPLIED))
    return next((one.entity for one in outcomes if one.status is Status.ACCEPTED), None)


def _record(
    folder: RunFolder,
    ledger_folder: Place,
    verified: Targets,
    desired: Mapping[Key, DesiredRow],
    differences: Iterable[Difference],
    *,
    brokers: KnownBrokers,
) -> str | None:
    """Write what was read back to the ledger, with its policy, its commit and the brokers.

    Verified again, a run does not bring back rows that were released since. Once another commit
    was applied, or a later run writes, that one's policy and files hold; returns which it is.
    """
    policy, about = folder.policy(), folder.about()
    seen = find_verified(folder, verified.keys())
    rows = [
        row
        for row in _rows(folder, policy.cluster_id, verified, desired, differences)
        if row.id not in seen
    ]
    cleared = list(_cleared(folder, policy.cluster_id, verified.keys() - seen, differences))
    foreign = {row.id for row in rows} & _foreign(folder)
    outcomes = folder.outcomes(APPLIED)
    lost, unanswered = find_unarrived(folder, differences), find_unacknowledged(outcomes)
    found = ledger.read(ledger_folder)
    overtaken = why_overtaken(folder, found, ledger_folder)
    follows_git = overtaken is None and why_lost(folder, found, ledger_folder) is None

    def edit(known: dict[LedgerKey, LedgerRow]) -> None:
        late = [
            row
            for row in known.values()
            if (row.state, row.run) == (ledger_edits.INTENDED, about["run"])
            if row.id in unanswered
        ]
        ledger_edits.confirm(known, rows)
        still = lost.intersection(known.values())
        ledger_edits.withdraw(known, (row.id for row in still))
        forget_answered(known, about["run"], find_acknowledged(outcomes))
        remember(known, (*late, *still), SUPERSEDED)
        remember(known, cleared, CLEARED)
        forget(known, foreign)
        if follows_git:
            ledger_edits.follow(known, desired)

    ledger.change(
        ledger_folder,
        edit,
        policy=policy if follows_git else None,
        commit=about["commit"] if follows_git else None,
        sequence=about["sequence"],
        brokers=brokers,
    )
    return overtaken


def _rows(
    folder: RunFolder,
    cluster_id: str,
    verified: Targets,
    desired: Mapping[Key, DesiredRow],
    differences: Iterable[Difference],
) -> Iterable[LedgerRow]:
    about, foreign = folder.about(), _foreign(folder)
    now = iso_utc()
    for difference in differences:
        key = difference.id
        if key in verified:
            asked = desired.get(key)
            yield LedgerRow(
                cluster_id,
                *key,
                None if key in foreign else verified[key],
                ledger_edits.VERIFIED,
                asked.owner if asked else None,
                asked.file if asked else None,
                about["commit"],
                about["run"],
                now,
                about["sequence"],
            )


def _cleared(
    folder: RunFolder,
    cluster_id: str,
    verified: AbstractSet[Key],
    differences: Iterable[Difference],
) -> Iterable[LedgerRow]:
    """Yield the values that this run itself cleared; what it only forgets is none of them."""
    about = folder.about()
    for row in differences:
        if row.action is Action.CLEAR and row.id in verified:
            yield LedgerRow(
                cluster_id,
                row.entity,
                row.key,
                row.before,
                CLEARED,
                row.owner,
                row.file,
                about["commit"],
                about["run"],
                iso_utc(),
                about["sequence"],
            )


def _foreign(folder: RunFolder) -> set[Key]:
    """The rows that a rollback gives back to whom they were taken from: no longer ours."""
    if not folder.has(ROLLBACK):
        return set()
    taken = folder.read_as(ROLLBACK, Rollback.from_json).taken
    return {row.id for row in taken if row.foreign}
