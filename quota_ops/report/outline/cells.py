"""The text of each column of a row, the same in every output."""

from collections.abc import Mapping, Sequence
from math import isfinite

from quota_ops.model.plans.ledger_edits import CLEARED, was_cleared
from quota_ops.model.plans.plan import change_share, cuts_a_client
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quotas.quota import UNLIMITED, format_limit
from quota_ops.model.quotas.rows import OverrideRow
from quota_ops.model.quotas.tables import DESIRED
from quota_ops.model.runs.outcome import AS_INTENDED, DONE, Outcome, Status
from quota_ops.model.runs.verification import BOOTSTRAP, BrokerResult, RowVerdict, Verdict
from quota_ops.model.text import counted, format_percent, plural
from quota_ops.precedence.changed_limits import ANY_CLIENT_ID
from quota_ops.precedence.resolution import explain_same_address
from quota_ops.report.outline.formats import escape_text, short_commit
from quota_ops.report.outline.row_status import ReportRow, RowStatus, Section, find_respelled

KIND_MEANING = {
    Kind.IN_SYNC: "Git and the cluster agree; the run records it in the ledger",
    Kind.PENDING: "changed in Git, not yet on the cluster",
    Kind.DRIFTED: "changed on the cluster, not in Git",
    Kind.TAKEOVER: "the cluster has another, unmanaged value",
    Kind.CONFLICT: "Git and the cluster differ from the ledger",
    Kind.REMOVED: "removed from Git, still on the cluster",
    Kind.CHANGED_SINCE: "removed from Git, and changed on the cluster since",
    Kind.LATE_WRITE: "an earlier run's write arrived late",
    Kind.RETURNED: "not in Git, and back on the cluster with a value that a run had cleared",
    Kind.OVERRIDING: "unmanaged, and some clients get it in place of what Git declares",
    Kind.UNMANAGED: "on the cluster, but neither in Git nor in the ledger",
    Kind.NOT_JUDGED: "declared last, or perhaps now, by a file that is invalid",
    Kind.GONE: "no longer in Git, and no longer on the cluster",
    Kind.CLEARED: "neither in Git nor on the cluster; an earlier run did not finish",
}
_EVERYONE = {USER: "every user", CLIENT_ID: "every client", IP: "every IP address"}
WITHOUT_OWN = {
    USER: "every user without a limit of their own",
    CLIENT_ID: "every client id without a limit of its own",
    IP: "every IP address without a limit of its own",
}
_OTHERS = {USER: "any other user", CLIENT_ID: "any other client", IP: "any other IP address"}
_NOUNS = {USER: "user", CLIENT_ID: "client", IP: "IP address"}


def kind(row: ReportRow) -> str:
    """Return the kind of a difference in words; empty without a plan, which alone finds kinds."""
    if row.difference.kind is Kind.OVERRIDING and row.section is Section.HELD:
        return "held"
    if row.status is RowStatus.OVERRIDDEN:
        return row.status
    return row.difference.kind.replace("_", " ") if row.planned else ""


def sign(row: ReportRow) -> str:
    """Return the change of a row as one sign, which adds nothing to the text beside it."""
    difference, section = row.difference, row.section
    if section is Section.PERSON:
        return "⚠"
    if section is Section.HELD:
        return "‖"
    if difference.action is Action.CLEAR:
        return "✂"
    if difference.action is not Action.SET:
        return ""
    if cuts_a_client(difference, row.effect):
        return "↓"
    return "+" if difference.before is None else "↑"


def current_heading(*, applied: bool) -> str:
    """Return the heading of `current`: `before` if the run applied, as it may have changed it."""
    return "before" if applied else "current"


def current(row: ReportRow) -> str:
    """Return the cluster's value before the run, with its unit."""
    return format_limit(row.difference.key, row.difference.before) if row.planned else ""


def desired(row: ReportRow) -> str:
    """Return the desired value: Git's, `none` for a key to be removed, or `stays`."""
    difference = row.difference
    if difference.action in WRITES:
        return format_limit(difference.key, difference.target)
    if difference.after is not None:
        return format_limit(difference.key, difference.after)
    return "none" if difference.action is Action.FORGET else "stays"


def change(row: ReportRow) -> str:
    """Return the change: `+50 %`, `new`, `was deleted`, `cleared`, `lifted`; empty for none."""
    difference = row.difference
    if difference.action not in WRITES:
        return ""
    if difference.target is None:
        return "cleared"
    if difference.before is None:
        back = "restored" if row.was_written else "not in force" if row.origin else "was deleted"
        new = "new, cuts" if cuts_a_client(difference, row.effect) else "new"
        return back if difference.is_drift else new
    if UNLIMITED in {current(row), desired(row)}:
        return "lifted" if desired(row) == UNLIMITED else "limited"
    share = change_share(difference)
    if not isfinite(share) or share == 0:
        return "replaced"
    return format_percent(share)


def origin(row: ReportRow) -> str:
    """Return where a value that is not in the ledger came from; empty for others."""
    return escape_text(row.origin.words) if row.origin else ""


SHARED: Mapping[tuple[str, ...], str] = {
    (USER,): "for all client ids of a user together",
    (CLIENT_ID,): "for all users of a client id together",
    (CLIENT_ID, USER): "for each client id of a user",
}
"""How clients share a limit, by the types of the entity that has it."""


def overriding(row: ReportRow) -> str:
    """Return the clients that an overriding quota applies to, and the quotas that it replaces."""
    if not row.overrides:
        return ""
    first, key = row.overrides[0], row.difference.key
    values = [format_limit(key, first.value), *(_declared(taken) for taken in row.overrides[:2])]
    if find_respelled(row.overrides):
        others = " and other quotas of Git" if row.overrides[1:] else ""
        of = f"{format_limit(key, first.declared)} of {_place(first)}{others}"
        same_address = explain_same_address(row.difference.entity)
        return escape_text(f"{values[0]}, or {of}, {same_address}")
    whom = f"{overriding_clients(row)}: {values[0]}"
    if row.overrides[1:]:
        return escape_text(f"{whom} in force, in place of {values[1]} and {values[2]}, for example")
    own, declared = Entity.parse(row.difference.entity), Entity.parse(first.declared_entity)
    if values[0] != format_limit(key, first.declared):
        order = "lower than" if first.value < first.declared else "higher than"
        return escape_text(f"{whom} in force, {order} {values[1]}")
    if own.types == declared.types:
        return escape_text(f"{whom} in force, and {values[1]}")
    shared = _declared(first, f" {SHARED[declared.types]}")
    is_single = len(own.parts) > 1 and all(name is not None for _, name in own.parts)
    alone = "for this client id alone" if is_single else SHARED[own.types]
    return escape_text(f"{whom} {alone} in force, and {shared}")


def _declared(taken: OverrideRow, shared: str = "") -> str:
    return f"{format_limit(taken.key, taken.declared)}{shared} declared by {_place(taken)}"


def _place(taken: OverrideRow) -> str:
    return f"{taken.declared_entity} ({taken.file}:{taken.line})"


def overriding_clients(row: ReportRow) -> str:
    """Return the clients that get an overriding quota: `user bob, client app`.

    If it replaces one quota of Git, they are clients of both.
    """
    entity = row.difference.entity
    parts = Entity.parse(entity).as_dict()
    if len(row.overrides) == 1:
        named = {kind: name for kind, name in parts.items() if name is not None}
        parts |= Entity.parse(row.overrides[0].declared_entity).as_dict() | named
    words = [
        WITHOUT_OWN[kind]
        if name is None and kind in WITHOUT_OWN
        else " ".join(_person(kind, name, alone=False)).strip()
        for kind, name in Entity.of(parts).user_first
    ]
    if CLIENT_ID not in parts and f"{ANY_CLIENT_ID},{entity}" in row.undeclared:
        words.append("clients without a client id")
    return ", ".join(words)


def source(row: ReportRow) -> str:
    """Return the Git line that declares or declared the row, and the run whose value returned."""
    return "  ".join(filter(None, (_declared_at(row.difference), format_memory(row.difference))))


def format_memory(difference: Difference) -> str:
    """Return which run cleared the row, or wrote its value late; empty for all others."""
    if difference.memory is None:
        return ""
    did = "cleared by" if difference.memory == CLEARED else "late write of"
    return escape_text(f"({did} run {difference.run})")


def _declared_at(difference: Difference) -> str:
    source = difference.source
    if source is None:
        return ""
    if difference.after is not None:
        derived = f" ({difference.derivation})" if difference.derivation else ""
        return escape_text(f"{source}{derived}")
    commit = difference.commit if difference.commit != difference.file else None
    word = "before" if was_cleared(difference) else "at"
    until = f", {word} {short_commit(commit)}" if commit else ""
    return f"(was {escape_text(source)}{until})"


def format_affected(row: ReportRow) -> str:
    """Return the clients of a default entity, `touches every user`, unless its effect says it."""
    if row.effect or row.overrides or not row.difference.has_default or row.section is Section.REST:
        return ""
    named = list_entity_names(Entity.parse(row.difference.entity))
    return f"touches {', '.join(f'{noun} {name}'.rstrip() for noun, name in named)}"


def list_entity_names(entity: Entity) -> tuple[tuple[str, str], ...]:
    """Return the parts of an entity as pairs of noun and name, the user first: (`user`, `alice`).

    A default has no name: (`any other client`, ``). A quoted name keeps its quotes.
    """
    parts = entity.user_first
    return tuple(_person(kind, name, alone=len(parts) == 1) for kind, name in parts)


def _person(kind: str, name: str | None, *, alone: bool) -> tuple[str, str]:
    text = Entity(((kind, name),)).text
    if kind not in ENTITY_TYPES:
        return "", text
    if name is None:
        return (_EVERYONE if alone else _OTHERS)[kind], ""
    return _NOUNS[kind], text.removeprefix(f"{kind}=")


def result(row: ReportRow, brokers: Sequence[BrokerResult] = ()) -> str:
    """Return the row's result on the brokers; `brokers` has what verify found, if it ran."""
    if row.verdict is not None and row.verdict.verdict is Verdict.UNANSWERED and row.applied:
        return f"{describe_outcome(row.applied)}; no broker responded afterwards"
    if row.verdict is not None:
        return escape_text(_seen(row.verdict, row.difference))
    if row.applied is not None:
        words = describe_outcome(row.applied)
        if row.applied.status not in DONE or not brokers:
            return words
        found = sum(broker.lagging is not None for broker in brokers)
        of_all = (
            "" if found == len(brokers) else f" on {found} of {counted(len(brokers), 'broker')}"
        )
        return f"{words}, verified{of_all}"
    if row.validated is not None:
        accepted = row.validated.status is Status.ACCEPTED
        return "would be accepted" if accepted else describe_outcome(row.validated)
    return explain_left(row)


def explain_left(row: ReportRow) -> str:
    """Return why a row stays as it is, and where its value came from."""
    return "; ".join(filter(None, (held(row) or left_alone(row), origin(row))))


def left_alone(row: ReportRow) -> str:
    """Return why a row that differs is only reported; empty for a row to be written."""
    difference = row.difference
    if difference.hands_off:
        return escape_text(f"left alone: {difference.hands_off}")
    if difference.action is Action.REPORT and difference.kind is Kind.DRIFTED:
        return "only reported: cluster.yaml sets drift: report"
    return ""


def held(row: ReportRow) -> str:
    """Return until when a row is held, by whom and why; empty if it is not held."""
    if row.section is not Section.HELD:
        return ""
    since_the_plan = row.applied.message if row.applied else None
    return escape_text(since_the_plan or row.difference.held or "")


def trouble(row: ReportRow) -> str:
    """Return why a row is not confirmed, and its line in Git; empty for all others."""
    if not name_trouble(row):
        return ""
    source = row.difference.source
    return result(row) + (f" [{escape_text(source)}]" if source else "")


def name_trouble(row: ReportRow) -> str:
    """Return the reason of `trouble` in a few words: `refused`, `differs`, `not read back`."""
    if row.verdict is not None and row.verdict.verdict is Verdict.DIFFERS:
        return "differs"
    outcome = row.applied or row.validated
    if outcome is None or outcome.status in AS_INTENDED:
        return "not read back" if row.verdict is not None else ""
    return outcome.status.replace("_", " ")


_STATUS = {
    Status.ACCEPTED: "accepted",
    Status.ALREADY: "already as planned",
    Status.REFUSED: "refused",
    Status.STALE: "left alone, changed since the plan",
    Status.UNKNOWN: "unknown: no response recorded",
    Status.HELD: "left alone",
    Status.WAITING: "waits for a decision",
    Status.NOT_SENT: "not sent",
}


def describe_outcome(outcome: Outcome) -> str:
    """Return an outcome with its message: `refused: Invalid quota value (INVALID_REQUEST)`."""
    words = _STATUS[outcome.status]
    if outcome.message:
        words += f": {outcome.message}"
    return escape_text(f"{words} ({outcome.error})" if outcome.error else words)


def _seen(verdict: RowVerdict, difference: Difference) -> str:
    stored: dict[str, list[int]] = {}
    for broker, value in verdict.seen:
        stored.setdefault(format_limit(verdict.key, value), []).append(broker)
    parts = (f"{_name_brokers(brokers)} {value}" for value, brokers in stored.items())
    words = "; ".join(parts) or "no broker responded"
    if difference.action not in WRITES or difference.target not in dict(verdict.seen).values():
        return words
    # Somebody changed the run's file: without this, the row would contradict itself.
    expected = format_limit(verdict.key, verdict.expected)
    return f"{words}; verify expected {expected}, as {DESIRED.file} of the run has it"


def _name_brokers(brokers: list[int]) -> str:
    if brokers == [BOOTSTRAP]:
        return "the bootstrap address stores"
    names, number = ", ".join(map(str, brokers)), len(brokers)
    return f"{plural(number, 'broker')} {names} {plural(number, 'stores', 'store')}"
