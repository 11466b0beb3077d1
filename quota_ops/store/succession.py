"""Whether another commit was applied since a run began, or a run that began later writes too."""

from collections.abc import Iterable

import pyarrow as pa

from quota_ops.model.commit import named
from quota_ops.model.errors import Refused
from quota_ops.model.ledger_edits import INTENDED, VERIFIED
from quota_ops.model.quota import same
from quota_ops.model.rows import DesiredRow, LedgerRow
from quota_ops.model.tables import DESIRED, LEDGER
from quota_ops.store import claims
from quota_ops.store.claims import Claim
from quota_ops.store.ledger import Ledger, applied, last, read
from quota_ops.store.parquet import to_rows
from quota_ops.store.place import Place
from quota_ops.store.run_folder import ROLLBACK, RunFolder
from quota_ops.store.run_json import typed
from quota_ops.store.run_numbers import last_number
from quota_ops.store.run_store import store_of

BEGAN = "began.json"
"""A run's commit, and which was the last applied one when the run first began at it."""


def note_beginning(folder: RunFolder, ledger_folder: Place) -> None:
    """Leave began.json, unless the run began at its commit before: then it takes a new number.

    Raises InvalidInput as `ledger.last` does.
    """
    commit = folder.about()["commit"]
    if folder.has(BEGAN) and _began(folder)[0] == commit:
        folder.take_next_number()
    else:
        _, commits = applied(last(ledger_folder).table)
        folder.write_json(BEGAN, {"commit": commit, "after": commits[-1] if commits else None})


def overtaken_by(folder: RunFolder, commits: tuple[str, ...]) -> str | None:
    """The commit that was applied last, if that was after the run first began at its own."""
    commit, after = _began(folder)
    if commit is None or not commits or commits[-1] in {commit, after}:
        return None
    return commits[-1]


def refuse_if_overtaken(folder: RunFolder, ledger_folder: Place) -> None:
    """Raise Refused when a run's plan may no longer be written: its ledger is lost, or it is late.

    Raises InvalidInput as `ledger.read` does.
    """
    known = read(ledger_folder)
    why = why_lost(folder, known, ledger_folder) or why_overtaken(folder, known, ledger_folder)
    if why is not None:
        raise Refused(why, "Nothing was written. Make a new plan.")


def why_lost(folder: RunFolder, known: Ledger, ledger_folder: Place) -> str | None:
    """Why the ledger is not the one that a run's plan was made from, or one after it.

    One that ends before that file was lost, or is an older copy.
    """
    (began, _), (_, then) = folder.described(), applied(folder.read_table(LEDGER))
    if (known.file or "") >= (began or "") and (known.commits or not then):
        return None
    return f"the ledger that this plan was made from, {began}, is gone from {ledger_folder}"


def claim(folder: RunFolder, ledger_folder: Place) -> None:
    """Let earlier runs see that this one applies, also where it finds nothing to change."""
    if number := folder.about()["sequence"]:
        claims.create(ledger_folder, number, _claim_of(folder))


def why_overtaken(folder: RunFolder, known: Ledger, ledger_folder: Place) -> str | None:
    """Which commit was applied since a run's plan was made, or which later run applies too.

    Of two runs, the one with the larger number began later. What an earlier run applies meanwhile
    overtakes nobody.
    """
    about, (_, then) = folder.about(), applied(folder.read_table(LEDGER))
    number = about["sequence"] or 0
    is_later = known.applied_by is None or known.applied_by > number
    for commit in known.commits[-1:]:
        if is_later and commit not in {*then[-1:], about["commit"]}:
            return f"{named(commit)} was applied since this plan was made"
    later = [row for row in known.rows if number and (row.sequence or 0) > number]
    why = _why_contradicted(folder, later) if later else None
    return why or (_why_claimed(folder, number, ledger_folder) if number else None)


def _why_claimed(folder: RunFolder, number: int, ledger_folder: Place) -> str | None:
    """Which later run, the last of all, has begun to apply another commit or other values.

    None overtakes a rollback: what it confirms is the very state that the rollback undoes.
    """
    last_claimed = claims.last_number(ledger_folder)
    if last_claimed <= number or folder.has(ROLLBACK):
        return None
    theirs, ours = claims.read(ledger_folder, last_claimed), _claim_of(folder)
    if theirs[1:] == ours[1:]:
        return None
    of = f" of {named(theirs.commit)}" if theirs.commit else ""
    return f"run {theirs.run}{of} began later, and has started to apply"


def _claim_of(folder: RunFolder) -> Claim:
    about, desired = folder.about(), folder.read_table(DESIRED)
    values = to_rows(desired.select(["entity", "key", "value"]))
    return Claim(about["run"], about["commit"], claims.digest_of(values))


def _why_contradicted(folder: RunFolder, later: Iterable[LedgerRow]) -> str | None:
    """Which later run is of another commit, or wants another value than this run does.

    One of the same commit and the same values takes nothing away: both may succeed.
    """
    commit = folder.about()["commit"]
    desired = map(DesiredRow._make, to_rows(folder.read_table(DESIRED)))
    wanted = {row.id: row.value for row in desired}
    for row in later:
        is_other = row.state in {INTENDED, VERIFIED} and not same(row.value, wanted.get(row.id))
        if row.commit != commit or is_other:
            of = f" of {named(row.commit)}" if row.commit else ""
            return f"run {row.run}{of} began later, and has started to write"
    return None


def take_number_above(folder: RunFolder, table: pa.Table, claimed: int) -> None:
    """Let a run come after all that its ledger knows, and after the last run that claimed.

    A ledger from another run store has larger numbers than this one has given: without it every
    run here would seem to be older than those.
    """
    noted = filter(None, table["sequence"].to_pylist())
    known = max(claimed, *noted, 0)
    if known > last_number(store_of(folder.place).sequence):
        folder.take_next_number(above=known)


def _began(folder: RunFolder) -> tuple[str | None, str | None]:
    if not folder.has(BEGAN):
        return None, None
    return folder.read_as(
        BEGAN,
        lambda told: (typed(told["commit"], str | None), typed(told["after"], str | None)),
    )
