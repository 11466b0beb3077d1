"""Whether another commit was applied since a run's plan was made."""

from pathlib import Path

from quota_ops.ledger import applied, last
from quota_ops.model.commit import named
from quota_ops.model.tables import LEDGER
from quota_ops.run_folder import RunFolder


def passed_by(folder: RunFolder, ledger_folder: Path) -> str | None:
    """Why the ledger has gone on without a run: its last commit is neither known to it nor its own.

    Raises InvalidInput as `ledger.last` does.
    """
    (_, then), (_, now) = applied(folder.read_table(LEDGER)), applied(last(ledger_folder).table)
    if now[-1:] in {then[-1:], (folder.about()["commit"],)}:
        return None
    if not now:
        return f"the ledger that this plan was made from is gone from {ledger_folder}"
    return f"{named(now[-1])} was applied since this plan was made"
