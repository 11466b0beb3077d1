"""Sentences about a whole run: its guards, its approval, the validation, and warnings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from quota_ops.findings.codes import BEYOND_THREADS, UNKNOWN_USER
from quota_ops.model.clusters.cluster_facts import Absent, ClusterFacts, Metadata
from quota_ops.model.commit import short
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.plan import SHORT, Plan
from quota_ops.model.quotas.difference import Action, Difference
from quota_ops.model.quotas.entity import ENTITY_TYPES, Entity
from quota_ops.model.quotas.owners import OwnerChange, OwnerIndex
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.runs.report import Report
from quota_ops.model.text import command, counted, name_first, plural
from quota_ops.report.outline.formats import duration, escape_text, moment
from quota_ops.report.outline.row_status import ReportRow, RowStatus, count_statuses, report_rows

INCOMPLETE = (
    "The cluster does not name its fenced brokers (Apache Kafka does since 4.0): one that is down "
    "is noticed only if the last verified run found it."
)
_NO_LEDGER = "No ledger of this cluster yet: nothing is cleared until a run has been verified."


def describe_lost_ledger(report: Report) -> str:
    """Return what a plan without a ledger does not do; empty if the cluster has or had one."""
    is_first = report.plan and report.plan.ledger is None and report.described.old_ledger is None
    return _NO_LEDGER if is_first else ""


def describe_standstill(plan: Plan) -> str:
    """Return the reason why nothing may be written, as one sentence; empty if there is none."""
    if plan.standstill is None:
        return ""
    return escape_text(
        f"{plan.policy.cluster} is {plan.standstill}. Nothing is written; reports continue."
    )


def altered_at_standstill(cluster: str, why: str) -> str:
    """Return the note that alter writes during a pause or a freeze, and reconcile does not."""
    back = "no reconcile of these files reverts it before that ends"
    return escape_text(f"{cluster} is {why}. alter writes anyway; {back}.")


def describe_holds(report: Report) -> list[str]:
    """Return the holds in force, of a plan the first to end first.

    `user=alice is held until 2026-11-21 05:12 UTC by anna: test`.
    """
    if report.plan is None:
        return [escape_text(f"{row.entity} is {row.held}") for row in report.held]
    holds = sorted(report.plan.holds, key=lambda hold: hold.until)
    return [escape_text(f"{hold.who.text} is {hold.text}") for hold in holds]


def describe_validated(report: Report) -> str:
    """Return the result of validate: `The broker accepts all 4 changes (validate-only ...).`.

    Empty if nothing was validated.
    """
    if report.plan is None or not report.validated:
        return ""
    batches = report.plan.batches
    how = f"validate-only, {counted(batches, 'request')}"
    seconds = next((stage.seconds for stage in report.stages if stage.stage == "validate"), None)
    how += f", {duration(seconds)}" if seconds is not None else ""
    keys = sum(len(outcome.keys) for outcome in report.validated)
    refused = sum(len(outcome.keys) for outcome in report.validated if outcome.status not in DONE)
    if refused:
        return f"The broker rejects {refused:,} of {counted(keys, 'change')} ({how})."
    few = {1: "the change", 2: "both changes"}
    changes = few.get(keys, f"all {counted(keys, 'change')}")
    return f"The broker accepts {changes} ({how})."


def describe_verified(report: Report) -> str:
    """Return how many rows were verified, and how many of them Git does not declare any more."""
    removed = sum(map(_is_removed, report_rows(report)))
    verified = report.verification.verified
    words = f": {verified - removed:,} declared in Git, {removed:,} removed" if removed else ""
    return f"{verified:,} verified{words}"


def _is_removed(row: ReportRow) -> bool:
    """Return whether verify expects that no broker stores the row."""
    if row.difference.action is Action.CLEAR:
        return row.applied is not None and row.applied.status in DONE
    return row.difference.action is Action.FORGET and row.status is not RowStatus.HELD


def is_accepted(report: Report) -> bool:
    """Return whether the broker would accept every row."""
    return all(outcome.status in DONE for outcome in report.validated)


def describe_repairs(report: Report, quoted: Callable[[str], str] = escape_text) -> str:
    """Return which changes a run writes although guards block its plan, and which wait.

    `quoted` is applied to the name of each row.
    """
    plan = report.plan
    if plan is None or not (repairs := plan.repairs):
        return ""
    done = {row.difference.id for row in report_rows(report) if row.is_done}
    did = "A run nevertheless restores"
    if done.issuperset(row.id for row in repairs):
        did = "This run restored"
    words = (
        f"{did} {counted(len(repairs), 'quota')} to the last verified "
        f"{plural(len(repairs), 'value')}: {name_rows(repairs, quoted)}."
    )
    if number := len(plan.waiting):
        words += f" {counted(number, 'other change')} {plural(number, 'waits', 'wait')}: "
        words += f"{name_rows(plan.waiting, quoted)}."
    return words


_NAMED = 3
"""How many rows a sentence names; the others are counted."""


def name_rows(rows: Sequence[Difference], quoted: Callable[[str], str]) -> str:
    """Return the first rows by entity and key, and how many more there are."""
    names = dict.fromkeys(f"{row.entity} {row.key}" for row in rows)
    return name_first(names, _NAMED, quoted)


def name_protected(report: Report, quoted: Callable[[str], str]) -> str:
    """Return the first protected rows, each with its value, and one that Git declares instead.

    The new and the changed ones come first, with what the last run before that found.
    """
    rows = [*{row.id: row for row in reversed(report.protected)}.values()]
    changes = {key: origin.words for key, origin in report.origins.items() if origin.after}
    rows.sort(key=lambda row: (row.id not in changes, row.id))
    texts = [
        f"{row.entity} {row.key} ({format_limit(row.key, row.value)} in place of "
        f"{format_limit(row.key, row.declared)}"
        + (f"; {changes[row.id]})" if row.id in changes else ")")
        for row in rows
    ]
    return name_first(texts, _NAMED, quoted)


def in_airflow(plan: Plan) -> str:
    """Return how to override guards in Airflow."""
    if plan.can_be_approved:
        return "approve the plan"
    return "trigger the reconcile DAG with allow and reason"


def in_jobs(plan: Plan) -> str:
    """Return where guards are overridden if no person runs the command, and how."""
    return f"in Airflow{' or CI' if plan.can_be_approved else ''}, {in_airflow(plan)}"


def describe_approval(report: Report) -> str:
    """Return who approved the plan or overrode guards, when and why; empty without decisions.

    It lists the last approval and every override.
    """
    approvals = [
        decision for decision in report.decisions if decision.said is DecisionKind.APPROVED
    ][-1:]
    overrides = [
        decision for decision in report.decisions if decision.said is DecisionKind.OVERRIDDEN
    ]
    return "; ".join(map(_describe_decision, (*overrides, *approvals)))


def _describe_decision(decision: Decision) -> str:
    who, login = decision.author, decision.login
    acted = f" (login {login})" if login and login != who else ""
    overrode = decision.said is DecisionKind.OVERRIDDEN
    did = f"overrode {', '.join(decision.guards)} of" if overrode else "approved"
    what = f"{did} plan {decision.digest[:SHORT]}"
    return f"{who}{acted} {what} at {moment(decision.at)}: {decision.reason}"


def describe_clock_lead(lead: float) -> str:
    """Return what a clock that is `lead` seconds ahead of the store's does; empty for 0."""
    if not lead:
        return ""
    side, end = ("ahead of", "early") if lead > 0 else ("behind", "late")
    return (
        f"The clock of this machine is {duration(abs(lead))} {side} that of the run store: holds "
        f"and freezes end that much too {end} here. Synchronize it."
    )


def describe_callback(facts: ClusterFacts | None, quoted: Callable[[str], str] = str) -> str:
    """Return the effect of a client.quota.callback.class on stored quotas; empty if none is known.

    `quoted` is applied to text from the broker. The class has no effect on limits of addresses
    (KIP-257).
    """
    classes = facts.callback_classes if facts else ()
    if facts is None or not classes:
        return ""
    having = [str(broker.id) for broker in facts.brokers if broker.callback_class]
    where = "every broker" if len(having) == len(facts.brokers) else f"broker {', '.join(having)}"
    return (
        f"client.quota.callback.class is {' and '.join(map(quoted, classes))} on {where}: it "
        "decides instead of Kafka, and may ignore the stored quotas of users and client ids."
    )


def describe_late_limits(facts: ClusterFacts | None) -> str:
    """Return the checks that were skipped because brokers responded too late; empty without any."""
    found = []
    if facts and facts.late:
        every = len(facts.late) == len(facts.brokers)
        some = f"{plural(len(facts.late), 'broker')} {', '.join(map(str, facts.late))}"
        whose = "no broker arrived" if every else f"{some} did not arrive"
        found.append(
            f"The settings of {whose} in time, so {BEYOND_THREADS} and "
            "client.quota.callback.class were not checked."
        )
    if facts and facts.late_users:
        found.append(
            f"The users and ACLs of the cluster did not arrive in time, so {UNKNOWN_USER} was not "
            "checked."
        )
    return " ".join(found)


def describe_metadata(metadata: Metadata | None) -> Iterator[str]:
    """Yield a sentence for each reason not to trust the quotas that the brokers report."""
    if metadata is None:
        return
    if metadata.led is False:
        yield (
            "No controller responds: the quotas that the brokers report may be outdated, and "
            "nothing can be written until a controller leads."
        )
    absent = {broker.id for broker in metadata.absent}
    for node, seconds in metadata.old.items():
        if node in absent:
            continue
        if node in metadata.answered:
            how = f"Broker {node} responds from outdated metadata"
        else:
            how = f"Node {node} does not respond, and no longer follows the metadata"
        yield f"{how}: it was up to date {duration(seconds)} ago."
    yield from _describe_absent_brokers(metadata)
    for node, rows in metadata.disagree:
        yield (
            f"Broker {node} reports {rows:,} managed rows differently from the other brokers: "
            "only what two responses agree on counts as changed."
        )


def names_of(brokers: Sequence[Absent]) -> str:
    """Return their names for the beginning of a sentence: `Broker 3`, `Brokers 3, 4`."""
    return f"{plural(len(brokers), 'Broker')} {', '.join(str(broker.id) for broker in brokers)}"


def _describe_absent_brokers(metadata: Metadata) -> Iterator[str]:
    for broker in metadata.absent:
        words = f"B{broker.named[1:]} {broker.why}"
        if broker.retired is None:
            yield f"{words}: no client is sent to it, and it was not queried."
        else:
            yield f"{words}; cluster.yaml lists it as retired: {escape_text(broker.retired)}."
    yield from describe_needless_retirements(metadata.needless)


def describe_needless_retirements(needless: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Yield a sentence for each entry of `retired_brokers` that has no effect."""
    for broker, why in needless:
        yield f"Broker {broker} {why}: remove it from retired_brokers in cluster.yaml."


_OLD_LEDGER = "This run read {}. The kinds and owners of rows may be wrong."


def _describe_old_ledger(report: Report) -> Iterator[str]:
    """Yield why the ledger is not the newest one, and how to replace one that is lost."""
    if report.described.old_ledger:
        words = _OLD_LEDGER.format(report.described.old_ledger)
        if report.plan and report.plan.ledger is None:
            adopt = command("adopt", report.cluster, "--all", reason="TEXT")
            words += f" Restore the ledger, or take over what Git declares: {adopt}"
        yield words


def warnings(report: Report, quoted: Callable[[str], str] = str) -> list[str]:
    """Return why quotas may not apply or may be outdated; see `describe_callback` for `quoted`."""
    failure, trouble = report.provenance.failure, report.past.trouble if report.past else None
    texts = (
        f"{quoted(failure)}. No plan is applied until this is fixed." if failure else "",
        *map(quoted, _describe_invalid(report)),
        *map(quoted, report.checked.code_owners),
        describe_callback(report.facts, quoted),
        describe_late_limits(report.facts),
        describe_clock_lead(report.described.clock_lead),
        *describe_metadata(report.metadata),
        *_describe_old_ledger(report),
        *_describe_uncompared(report),
        *map(quoted, describe_owner_changes(report.owner_changes, report.plan)),
        _describe_foreign_rows(report),
        _describe_unread_rows(report),
        *map(quoted, filter(None, (report.audit, report.history, trouble))),
    )
    return [words for words in texts if words]


def _describe_uncompared(report: Report) -> Iterator[str]:
    """Yield which commits are not compared, if rows are written: one might be undone unseen."""
    changes = report.changes
    if changes is None or report.plan is None or not report.plan.writes:
        return
    if changes.uncompared:
        why = changes.failure or "fetch all of it (git fetch --unshallow)"
        yield (
            f"It is unknown whether {short(changes.uncompared)}, which was applied last, is in the "
            f"history of these files: {why}."
        )
    if not changes.has_own:
        yield (
            f"This repository has no commit {report.provenance.commit}, so later runs are not "
            f"compared with it (guard {Guard.WENT_BACK})."
        )


def describe_owner_changes(changes: Iterable[OwnerChange], plan: Plan | None) -> Iterator[str]:
    """Yield each change of an owner that no guard of the plan lists."""
    owners = OwnerIndex(plan.policy.owners) if plan else None
    return (change.text for change in changes if not (owners and change.needs_approval(owners)))


def _describe_invalid(report: Report) -> Iterator[str]:
    """Yield a sentence for each file that was left out, and what happens to its quotas."""
    yield from (f"{file.text}" for file in report.invalid)
    if report.invalid:
        number = count_statuses(report)[RowStatus.NOT_JUDGED]
        left = f"{counted(number, 'quota')} {plural(number, 'stays', 'stay')} as stored, not judged"
        if report.plan is None:
            left = "the quotas that it declared last stay as stored, not judged"
        which = plural(len(report.invalid), "it is", "they are")
        is_checked = any(file.problems for file in report.invalid)
        more = f": {command('check', report.cluster)} shows every problem" if is_checked else ""
        yield (
            f"Until {which} corrected, nothing is cleared on {report.cluster}, and {left}{more}."
        )


def describe_protected(report: Report) -> str:
    """Return how many quotas of Git protected ones come first for; empty for none."""
    number = len({row.declared_id for row in report.protected})
    if not number:
        return ""
    return (
        f"{counted(number, 'quota')} of Git {plural(number, 'is', 'are')} not in force for all "
        "clients, because protected quotas come first"
    )


def _describe_foreign_rows(report: Report) -> str:
    """Return which stored quotas cannot be compared with Git's limits; empty for none."""
    rows = [row for row in report.plan.differences if row.hands_off] if report.plan else []
    foreign = [row for row in rows if set(Entity.parse(row.entity).types) - {*ENTITY_TYPES}]
    if not foreign:
        return ""
    which = name_first((row.entity for row in foreign), quoted=escape_text)
    return (
        f"Whether clients get {which} in place of what Git declares is unknown: Apache Kafka "
        "does not have this entity type."
    )


def _describe_unread_rows(report: Report) -> str:
    """Return the number of unchanged quotas that were not read back; empty if all were."""
    if not (number := count_statuses(report)[RowStatus.UNREAD]):
        return ""
    which = " that this run did not change" if report.plan else ""
    were = plural(number, "was", "were")
    return f"{counted(number, 'quota')}{which} {were} not read back: no broker responded."


SOON = timedelta(days=7)


def count_ending(report: Report) -> str:
    """Return how many holds end within a week of a report, and when; empty for none.

    `2 holds end, the first at 2026-11-21 15:15 UTC`: it has no time left, as a page is read later.
    """
    holds = report.plan.holds if report.plan else ()
    latest = datetime.fromisoformat(report.finished) + SOON
    ends = [hold.until for hold in holds if hold.until <= latest]
    if not ends:
        return ""
    number, first = len(ends), moment(iso_utc(min(ends)))
    return f"{counted(number, 'hold')} {plural(number, 'ends', 'end, the first')} at {first}"
