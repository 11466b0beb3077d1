"""Updates the ledger after verify: rows verified or cleared, and writes that cannot arrive."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from quota_ops.model.clusters.cluster_facts import KnownBrokers
from quota_ops.model.commit import Changes
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.ledger_edits import LedgerKey, Owners
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import WRITES, Action, Difference
from quota_ops.model.quotas.rows import Key, Keys, LedgerRow, Targets
from quota_ops.model.quotas.tables import DESIRED
from quota_ops.model.runs.outcome import Outcome, Status, find_open
from quota_ops.model.runs.run import About
from quota_ops.stages.verify.brokers import ReadBack
from quota_ops.store.ledger import ledger
from quota_ops.store.ledger.claims import digest_of
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.run.files import CHANGES, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState


class AppliedRun(NamedTuple):
    """A run as its artifacts describe it, each read once; without outcomes if it did not apply."""

    about: About
    policy: Policy
    differences: Sequence[Difference]
    outcomes: Sequence[Outcome]

    @property
    def last_written(self) -> str | None:
        """The entity of the last write that the controller accepted."""
        outcomes = reversed(self.outcomes)
        return next(
            (outcome.entity for outcome in outcomes if outcome.status is Status.ACCEPTED), None
        )


def update_ledger(
    folder: RunFolder,
    run: AppliedRun,
    read: ReadBack,
    *,
    commits: Sequence[str],
    brokers: KnownBrokers,
    is_last: bool,
) -> None:
    """Record the verified rows and brokers, and the run's policy and commit.

    `commits` are those that the ledger has. It forgets a write of this run when it was read back
    and none of its requests can still arrive, and any other write when it is too old to arrive.
    Rows that an earlier verify of the same run recorded are not recorded again, because they may
    have been released since. Unless the run `is_last` (no other commit was applied, no later run
    writes, the ledger is no older one), and if changes wait, the ledger keeps its policy, commit,
    files and owners.
    """
    foreign, verified = _find_foreign(folder), read.verified
    recorded = RunState(folder).find_verified(verified.keys())
    columns = ("entity", "key", "owner", "file", "value", "until", "returns_to")
    declared = [*to_rows(folder.read_table(DESIRED), *columns)]
    owners: Owners = {row[:2]: row[2:4] for row in declared}
    rows, cleared = _list_rows(run, owners, verified, recorded, foreign)
    given_back = {row.id for row in rows if row.value is None and row.id in foreign}
    reported = {row.id: row.before for row in run.differences if row.action is Action.REPORT}
    name, number = run.about.run, run.about.sequence
    now = datetime.now(UTC)
    # The commit of a plan that waits is not applied yet: its owners and policy do not count.
    follows_git = is_last and all(row.status is not Status.WAITING for row in run.outcomes)
    policy, commit = _find_applied(folder, run, commits) if follows_git else (None, None)

    def edit(known: dict[LedgerKey, LedgerRow]) -> None:
        ledger_edits.confirm(known, rows)
        ledger_edits.outlive(known, reported, number or 0)
        ledger_edits.settle(known, name, find_open(run.outcomes), verified)
        ledger_edits.remember_cleared(known, cleared)
        ledger_edits.forget(known, given_back)
        if follows_git:
            ledger_edits.forget_impossible(known, run.policy.memory, now, read.stored.values())
            ledger_edits.follow(known, owners)

    ledger.change(
        folder.records,
        edit,
        policy=policy,
        commit=commit,
        declared=digest_of((*row[:3], *row[4:]) for row in declared),
        sequence=number,
        brokers=brokers,
    )


def _find_applied(
    folder: RunFolder, run: AppliedRun, commits: Sequence[str]
) -> tuple[Policy | None, str | None]:
    """Return the policy and the commit that a run leaves as the last applied ones.

    A commit that lacks the last one, and that holds keep from writing, has to be blocked later. So
    it does not count, and its policy neither; if Git cannot compare the two, its policy does.
    """
    commit, changes = run.about.commit, folder.find(CHANGES) or Changes()
    is_held = any(row.action is Action.HELD for row in run.differences)
    if is_held and not any(row.action in WRITES and not row.restores for row in run.differences):
        if commit in commits[:-1] or changes.lacks is not None:
            return None, None
        if changes.uncompared is not None:
            return run.policy, None
    return run.policy, commit


def _list_rows(
    run: AppliedRun, owners: Owners, verified: Targets, recorded: Keys, foreign: Keys
) -> tuple[list[LedgerRow], list[LedgerRow]]:
    """Return ledger rows for what was read back, and for the values that this run cleared."""
    about, commit, now = run.about, run.about.commit, iso_utc()
    rows, cleared = list[LedgerRow](), list[LedgerRow]()
    for row in run.differences:
        if (key := row.id) not in verified or key in recorded:
            continue
        owner, file = owners.get(key, (None, None))
        found = LedgerRow(
            run.policy.cluster_id,
            *key,
            None if key in foreign else verified[key],
            ledger_edits.VERIFIED,
            owner=owner,
            file=file,
            commit=row.find_commit(commit),
            run=about.run,
            at=now,
            sequence=about.sequence,
            returns_to=row.returns_to,
            brokers=row.brokers,
        )
        rows.append(found)
        if row.action is Action.CLEAR:
            cleared.append(found._replace(value=row.before, owner=row.owner, file=row.file))
    return rows, cleared


def _find_foreign(folder: RunFolder) -> set[Key]:
    """Return the rows that were unmanaged before the run that this rollback undoes."""
    if not folder.has(ROLLBACK):
        return set()
    taken = folder.read(ROLLBACK).taken
    return {row.id for row in taken if row.foreign}
