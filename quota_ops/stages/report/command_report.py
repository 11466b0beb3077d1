"""The result of a run without a plan of Git: `alter`, `adopt` and `release --from-ledger`."""

from collections.abc import Callable, Sequence

from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.report import Record, Verb
from quota_ops.model.runs.run import Alter
from quota_ops.model.runs.stages import StageStatus
from quota_ops.model.text import counted, plural
from quota_ops.report.screens.adoption import describe_released
from quota_ops.store.run.files import ADOPTED, ALTER, PLAN, RECORDS, RELEASED, VALIDATED
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.state import RunState

_REFUSED = "the broker rejects {} of {}"
_ACCEPTED = "the broker would accept all of it"
_UNALTERED = ("Not altered", "Unknown")
_ONLY_VALIDATED = f"{_ACCEPTED}, and was only validated"


def read_record(folder: RunFolder) -> Record | None:
    """Return the result of a run without a plan of Git; None for any other run.

    Raises InvalidInput when an artifact is damaged.
    """
    record = folder.record()
    if record is None:
        return None
    file = next(file for file in RECORDS if folder.has(file))
    verb, describe = _COMMANDS[file]
    plan = folder.plan() if folder.has(PLAN) else None
    if isinstance(record, Alter):
        changes = folder.differences() if plan else ()
    else:
        changes = tuple(map(_make_row, record.rows))
    guards = _describe_guards(plan.guards) if plan else ""
    word, words = describe(folder, f", by {record.by}{guards}")
    return Record(word, words, verb, record.by, record.login, record.reason, changes)


def _make_row(row: LedgerRow) -> Difference:
    kind, action = Kind.UNMANAGED, Action.REPORT
    value, owner, file = row.value, row.owner, row.file
    return Difference(row.cluster, *row.id, kind, action, value, value, owner=owner, file=file)


def _describe_guards(guards: Sequence[GuardFinding]) -> str:
    """Return the guards that blocked or were overridden, each with its finding, as text."""
    did = "blocked by" if any(guard.allowed is None for guard in guards) else "overriding"
    found = "; ".join(
        f"guard {guard.guard} ({guard.message})"
        for guard in guards
        if guard.allowed is None or did == "overriding"
    )
    return f", {did} {found}" if found else ""


def _altered(folder: RunFolder, by: str) -> tuple[str, str]:
    cluster, state = folder.about().cluster, RunState(folder)
    if state.has_sent:
        if not (changing := state.changing):
            stores = f"{cluster} already stored these values"
            return ("Not altered", f"there was nothing to change{by}: {stores}")
        keys, unknown = len(state.written), len(state.unknown)
        were = plural(len(changing), "was", "were")
        may = f", {unknown:,} may have been" if unknown else ""
        words = f"{keys:,} of {counted(len(changing), 'change')} on {cluster} {were} written"
        return ("Altered" if keys else _UNALTERED[bool(unknown)], f"{words}{may}{by}")
    validated = state.read_outcomes(VALIDATED)
    refused = sum(outcome.status is not Status.ACCEPTED for outcome in validated)
    if not folder.has(VALIDATED):
        return ("Not altered", f"nothing was written on {cluster}{by}: no broker validated it")
    is_blocked = bool(folder.plan().refused)
    has_tried = is_blocked or state.apply.status is not StageStatus.NOT_RUN
    why = _ACCEPTED if has_tried else _ONLY_VALIDATED
    if refused:
        why = _REFUSED.format(refused, counted(len(validated), "entity"))
    return ("Not altered", f"nothing was written on {cluster}{by}: {why}")


def _adopted(folder: RunFolder, by: str) -> tuple[str, str]:
    rows = folder.read(ADOPTED).rows
    quotas, cluster = counted(len(rows), "quota"), folder.about().cluster
    return ("Adopted", f"{quotas} on {cluster} entered the ledger{by}")


def _released(folder: RunFolder, by: str) -> tuple[str, str]:
    rows = folder.read(RELEASED).rows
    words = describe_released((row.id, row.state) for row in rows)
    return ("Released", f"{words} on {folder.about().cluster}{by}")


_COMMANDS: dict[str, tuple[Verb, Callable[[RunFolder, str], tuple[str, str]]]] = {
    ALTER: (Verb.ALTER, _altered),
    ADOPTED: (Verb.ADOPT, _adopted),
    RELEASED: (Verb.RELEASE, _released),
}
