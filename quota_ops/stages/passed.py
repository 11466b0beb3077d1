"""Whether a run's plan still follows on from the ledger, or another run has come in between."""

from pathlib import Path

from quota_ops.ledger import applied, last
from quota_ops.model.commit import named
from quota_ops.model.tables import LEDGER
from quota_ops.run_folder import RunFolder


def passed_by(folder: RunFolder, ledger_folder: Path) -> str | None:
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
