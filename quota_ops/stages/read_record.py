"""What a run without a plan did: `alter`, `adopt` and `release --from-ledger`."""

from collections.abc import Callable

from quota_ops.model.numbers import counted, plural
from quota_ops.model.outcome import Status
from quota_ops.model.report import Record
from quota_ops.run_folder import ADOPTED, ALTER, APPLIED, RELEASED, VALIDATED, RunFolder

_REFUSED = "the broker refuses {} of {}"
_ONLY_ASKED = "the broker would accept all of it, and was only asked"


def read_record(folder: RunFolder) -> Record | None:
    """Return what such a run did, in a word and a sentence; None for any other run.

    Raises InvalidInput when an artefact is damaged.
    """
    for name, say in _RECORDS.items():
        if folder.has(name):
            values = folder.read_json(name)
            rows = values.get("changes", values.get("rows", ()))
            by = f", by {values['by']}" if values.get("by") else ""
            return say(folder, len(rows), by)
    return None


def _altered(folder: RunFolder, rows: int, by: str) -> Record:
    cluster = folder.about()["cluster"]
    if folder.has(APPLIED):
        done = folder.outcomes(APPLIED)
        keys = sum(len(one.keys) for one in done if one.status is Status.ACCEPTED)
        were = plural(rows, "was", "were")
        words = f"{keys:,} of {counted(rows, 'change')} on {cluster} {were} written{by}"
        return Record("Altered" if keys else "Not altered", words)
    asked = folder.outcomes(VALIDATED)
    refused = sum(one.status is not Status.ACCEPTED for one in asked)
    why = _REFUSED.format(refused, counted(len(asked), "entity")) if refused else _ONLY_ASKED
    return Record("Not altered", f"nothing was written on {cluster}{by}: {why}")


def _adopted(folder: RunFolder, rows: int, by: str) -> Record:
    quotas, cluster = counted(rows, "quota"), folder.about()["cluster"]
    return Record("Adopted", f"{quotas} on {cluster} entered the ledger{by}")


def _released(folder: RunFolder, rows: int, by: str) -> Record:
    quotas, cluster = counted(rows, "row"), folder.about()["cluster"]
    return Record("Released", f"{quotas} of {cluster} left the ledger{by}")


_RECORDS: dict[str, Callable[[RunFolder, int, str], Record]] = {
    ALTER: _altered,
    ADOPTED: _adopted,
    RELEASED: _released,
}
