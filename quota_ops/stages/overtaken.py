"""Whether another commit was applied since a run began, or since it made its plan."""

from pathlib import Path

import pyarrow as pa

from quota_ops.ledger import applied, last
from quota_ops.model.commit import named
from quota_ops.model.tables import LEDGER
from quota_ops.run_folder import RunFolder
from quota_ops.run_json import typed
from quota_ops.run_store import store_of
from quota_ops.sequence import last_number

BEGAN = "began.json"
"""A run's commit, and which was the last applied one when the run first began at it."""


def note_beginning(folder: RunFolder, ledger_folder: Path) -> None:
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


def why_overtaken(folder: RunFolder, ledger_folder: Path) -> str | None:
    """Why a run's plan holds no longer: another commit was applied since, or its ledger is gone.

    A ledger that ends before the file that the plan was made from was lost, or is an older copy.
    Raises InvalidInput as `ledger.last` does.
    """
    (began, _), found = folder.described(), last(ledger_folder)
    (_, then), (_, now) = applied(folder.read_table(LEDGER)), applied(found.table)
    if (found.name or "") < (began or "") or (then and not now):
        return f"the ledger that this plan was made from, {began}, is gone from {ledger_folder}"
    if now[-1:] in {then[-1:], (folder.about()["commit"],)}:
        return None
    return f"{named(now[-1])} was applied since this plan was made"


def take_number_above(folder: RunFolder, table: pa.Table) -> None:
    """Let a run whose ledger comes from another run store come after the runs that it knows.

    That store has given larger numbers than this one has: without it every run here would seem to
    be older than those.
    """
    known = max(filter(None, table["sequence"].to_pylist()), default=0)
    if known > last_number(store_of(folder.path).sequence):
        folder.take_next_number(above=known)


def _began(folder: RunFolder) -> tuple[str | None, str | None]:
    if not folder.has(BEGAN):
        return None, None
    return folder.read_as(
        BEGAN,
        lambda told: (typed(told["commit"], str | None), typed(told["after"], str | None)),
    )
