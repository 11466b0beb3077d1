"""What a run without a plan did: `alter`, `adopt` and `release --from-ledger`."""

from collections.abc import Callable, Sequence

from quota_ops.model.guard_finding import GuardFinding, read_guards
from quota_ops.model.numbers import counted, plural
from quota_ops.model.outcome import Status
from quota_ops.model.report import Record, StageStatus
from quota_ops.run_folder import ADOPTED, ALTER, APPLIED, RELEASED, VALIDATED, RunFolder

_REFUSED = "the broker refuses {} of {}"
_ACCEPTED = "the broker would accept all of it"
_ONLY_ASKED = f"{_ACCEPTED}, and was only asked"


def read_record(folder: RunFolder) -> Record | None:
    """Return what such a run did, in a word and a sentence; None for any other run.

    Raises InvalidInput when an artefact is damaged.
    """
    for name, say in _RECORDS.items():
        if folder.has(name):
            values = folder.read_json(name)
            rows = values.get("changes", values.get("rows", ()))
            by = f", by {values['by']}" if values.get("by") else ""
            return say(folder, len(rows), by + _guards(folder.read_as(name, read_guards)))
    return None


def _guards(guards: Sequence[GuardFinding]) -> str:
    """Return the guards that blocked or were overridden, each with what it found."""
    did = "blocked by" if any(one.allowed is None for one in guards) else "overriding"
    found = "; ".join(
        f"guard {one.guard} ({one.message})"
        for one in guards
        if one.allowed is None or did == "overriding"
    )
    return f", {did} {found}" if found else ""


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
    stopped = folder.stage_result("apply").status is StageStatus.REFUSED
    why = _ACCEPTED if stopped else _ONLY_ASKED
    if refused:
        why = _REFUSED.format(refused, counted(len(asked), "entity"))
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
