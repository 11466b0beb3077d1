"""Whether another commit was applied since a run began, or a later run writes as well."""

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa

from quota_ops.model.commit import is_git, named
from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.plans.ledger_edits import ALTERED, INTENDED, VERIFIED
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key, LedgerRow
from quota_ops.model.quotas.tables import DESIRED, LEDGER
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.runs.run import Beginning
from quota_ops.model.stored import from_json
from quota_ops.model.text import command
from quota_ops.store.ledger import claims, ledger_end
from quota_ops.store.ledger.claims import Claim
from quota_ops.store.ledger.ledger import Ledger, read, read_notes
from quota_ops.store.places.parquet import to_rows, to_values
from quota_ops.store.run.files import APPLIED, BEGAN, DESCRIBED, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import last_number
from quota_ops.store.run.restart import move_attempt
from quota_ops.store.run.state import RunState


def begin(folder: RunFolder) -> None:
    """Move an earlier attempt from describe on, and write began.json.

    A run that already began with its commit takes a new number instead. Raises InvalidInput like
    `ledger.read`.
    """
    move_attempt(folder, "describe")
    commit = folder.about().commit
    if folder.has(BEGAN) and _began(folder).commit == commit:
        folder.take_next_number()
    else:
        commits = read(folder.records).notes.commits
        folder.write(BEGAN, Beginning(commit, commits[-1] if commits else None))


def find_unverified_commit(folder: RunFolder, table: pa.Table, applied_by: int) -> str | None:
    """Return the commit of the last run that noted writes of it in a ledger, and was not verified.

    None if there is no such run since the run `applied_by`, which applied the last commit. A run
    without a commit of Git does not count, nor one that only repaired what earlier ones declare.
    If the ledger is an older copy, each run that began to apply a commit counts.
    """
    described = folder.find(DESCRIBED)
    if described is not None and described.old_ledger is not None:
        return _find_claimed_commit(folder, applied_by)
    states = to_values(table["state"])
    if INTENDED not in states:
        return None
    noted = zip(states, to_values(table["sequence"]), to_values(table["commit"]), strict=True)
    commits = defaultdict[int, set[str | None]](set)
    for state, number, commit in noted:
        if state == INTENDED:
            commits[number or 0].add(commit)
    for number in sorted((number for number in commits if number > applied_by), reverse=True):
        claim = claims.find(folder.records, number)
        if claim and claim.commit and claim.commit in commits[number] and is_git(claim.commit):
            return claim.commit
    return None


def _find_claimed_commit(folder: RunFolder, applied_by: int) -> str | None:
    own, records = folder.about().sequence, folder.records
    later = {number for number in claims.list_numbers(records) if number > applied_by} - {own}
    for number in sorted(later, reverse=True):
        commit = claims.read(records, number).commit
        if commit is not None and is_git(commit):
            return commit
    return None


def read_applied_policy(folder: RunFolder, table: pa.Table) -> Policy | None:
    """Return the policy that was last applied, from a ledger; None if none was.

    Raises InvalidInput if a newer version of quota-ops applied it.
    """
    values = read_notes(table).policy
    try:
        return None if values is None else from_json(Policy, values)
    except ValueError as error:
        raise InvalidInput(
            f"the last applied policy in the ledger of run {folder.place} cannot be read by this "
            f"version of quota-ops: {error}",
            "Install the version that applied it, or a newer one.",
        ) from error


def find_overtaking_commit(folder: RunFolder, commits: tuple[str, ...]) -> str | None:
    """Return the last applied commit, if it was applied after the run first began."""
    began = _began(folder)
    if began.commit is None or not commits or commits[-1] in {began.commit, began.after}:
        return None
    return commits[-1]


def refuse_if_overtaken(folder: RunFolder) -> None:
    """Raise Refused if a run's plan may no longer be written: its ledger is lost, or it is late.

    Raises InvalidInput like `ledger.read`.
    """
    known = read(folder.records)
    why = why_lost(folder, known) or why_overtaken(folder, known)
    if why is not None:
        raise Refused(why, format_new_plan_remedy(folder))


def refuse_if_replaced(folder: RunFolder) -> None:
    """Raise Refused if a later run applies, and all that this one planned was verified before.

    Otherwise what the later run wrote would count against this one. Raises InvalidInput like
    `ledger.read`.
    """
    run = RunState(folder, lambda *_: None)  # verify replaces a damaged file
    found = run.read_back
    if not folder.has(APPLIED) or found is None or not found.brokers:
        return
    is_done = all(row.status in DONE and not row.may_arrive for row in run.outcomes)
    if not (is_done and all(broker.agrees for broker in found.brokers)):
        return
    if (why := why_overtaken(folder, read(folder.records))) is not None:
        compare = command("verify", folder.about().cluster)
        raise Refused(
            why, f"This run was verified before, and stays so. To compare with Git now: {compare}"
        )


def format_new_plan_remedy(folder: RunFolder) -> str:
    """Return the remedy for a plan that may no longer be written: the command for a new plan."""
    is_rollback = folder.has(ROLLBACK)
    again = command("rollback", "RUN") if is_rollback else command("plan", folder.about().cluster)
    return f"Nothing was written. Make a new plan: {again}"


def why_lost(folder: RunFolder, known: Ledger) -> str | None:
    """Return why the ledger is older than it was when a run's plan was made, or later.

    A ledger that ends before the file of then, or before the newest file that any run has written,
    was lost or is an older copy. None if it is neither.
    """
    described, records = folder.read(DESCRIBED), folder.records
    began, then = described.ledger, read_notes(folder.read_table(LEDGER)).commits
    if (known.file or "") < (began or "") or (then and not known.notes.commits):
        return f"the ledger that this plan was made from, {began}, is no longer in {records.ledger}"
    newest = ledger_end.read(records)
    if described.old_ledger or newest is None or ledger_end.has_file(records, newest):
        return None
    is_there = (records.ledger / newest.name).exists()
    what = "was changed since a run wrote it, in" if is_there else "is no longer in"
    return f"{newest.name}, the newest file of the ledger, {what} {records.ledger}"


def record_claim(folder: RunFolder) -> None:
    """Show earlier runs that this one applies, even if it has nothing to change."""
    if number := folder.about().sequence:
        claims.create(folder.records, number, _claim_of(folder))


def why_overtaken(folder: RunFolder, known: Ledger) -> str | None:
    """Return which commit was applied since a run's plan was made, or which later run applies.

    Of two runs, the one with the larger number began later. An earlier run never overtakes.
    """
    about, then = folder.about(), read_notes(folder.read_table(LEDGER)).commits
    number, last_by = about.sequence or 0, known.notes.applied_by
    is_later = last_by is None or last_by > number
    for commit in known.notes.commits[-1:]:
        if is_later and commit not in {*then[-1:], about.commit}:
            return f"{named(commit)} was applied since this plan was made"
    later = [
        row
        for row in known.rows
        if number and (row.sequence or 0) > number and row.state != ALTERED
    ]
    why = _why_contradicted(folder, later) if later else None
    return why or (_why_claimed(folder, number) if number else None)


def _why_claimed(folder: RunFolder, number: int) -> str | None:
    """Return which later run, the last one, has begun to apply another commit or other values.

    No run overtakes a rollback: it would confirm the state that the rollback undoes.
    """
    last_claimed = claims.last_number(folder.records)
    if last_claimed <= number or folder.has(ROLLBACK):
        return None
    theirs, own = claims.read(folder.records, last_claimed), _claim_of(folder)
    if theirs[1:] == own[1:]:
        return None
    return f"{_name_run(theirs)} began later, and has started to apply"


def _name_run(claim: Claim) -> str:
    return f"run {claim.run}" + (f" of {named(claim.commit)}" if claim.commit else "")


def _claim_of(folder: RunFolder) -> Claim:
    about, desired = folder.about(), folder.read_table(DESIRED)
    values = to_rows(desired, "entity", "key", "value")
    return Claim(about.run, about.commit, claims.digest_of(values))


def _why_contradicted(folder: RunFolder, later: Iterable[LedgerRow]) -> str | None:
    """Return which later run has another value for a row of this run.

    The commit of a row declared its value first, and need not be that of the run: see the claim.
    """
    wanted = folder.read_values(DESIRED)
    for row in later:
        if row.state in {INTENDED, VERIFIED} and not same(row.value, wanted.get(row.id)):
            claim = claims.find(folder.records, row.sequence or 0) or Claim(row.run, None, "")
            return f"{_name_run(claim)} began later, and has started to write"
    return None


def read_later_values(folder: RunFolder) -> dict[Key, float]:
    """Return what the last run to claim declares, if it began later and its folder is kept."""
    about, number = folder.about(), claims.last_number(folder.records)
    claim = claims.find(folder.records, number) if number > (about.sequence or 0) else None
    later = claim and RunFolder(folder.store.runs_of(about.cluster) / claim.run)
    is_kept = later and later.has(DESIRED.file)
    return later.read_values(DESIRED) if later and is_kept else {}


def take_number_above(folder: RunFolder, table: pa.Table, claimed: int) -> None:
    """Give a run a number above those in its ledger, and above the last run that claimed.

    A ledger from another run store may have larger numbers than this store: without this, every
    run here would count as older.
    """
    noted = filter(None, table["sequence"].to_pylist())
    known = max(claimed, *noted, 0)
    if known > last_number(folder.store.sequence):
        folder.take_next_number(above=known)


def _began(folder: RunFolder) -> Beginning:
    return folder.find(BEGAN) or Beginning()
