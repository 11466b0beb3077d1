"""The screens of a plan, apply and verify, as values that `plain` and `terminal.show` lay out."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.findings.silences import list_unsilenced
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.plans.plan import SHORT, Plan
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.runs.outcome import AS_INTENDED, Outcome, Status
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted, plural
from quota_ops.report.outline import cells
from quota_ops.report.outline.brokers import describe_broker, describe_brokers
from quota_ops.report.outline.cells import trouble
from quota_ops.report.outline.commands import list_overriding_ways
from quota_ops.report.outline.findings import FEW, excerpt, finding_lines
from quota_ops.report.outline.formats import at_commit, duration, escape_text
from quota_ops.report.outline.layout import Line, Screen, Span, Tone, line, more_line
from quota_ops.report.outline.outline import AFTER_PLAN, stopped_stages, topic_lines
from quota_ops.report.outline.row_status import (
    RowStatus,
    Section,
    count_not_in_force,
    find_overridden,
    find_respelled,
    list_unread_rows,
    report_rows,
)
from quota_ops.report.outline.row_table import Fold, fold_profiles, plan_table
from quota_ops.report.outline.sentences import describe_approval, name_protected

STOPPED = "Until this is corrected, runs of this cluster change nothing."
CODEOWNERS = "CODEOWNERS"
UNREAD = "Runs report this too, and apply what the quotas files declare."
UNTIL_THEN = (
    "Until this is corrected, runs apply only the other quotas files, and clear nothing. A file "
    "that cannot be read or a problem elsewhere, for example in cluster.yaml, stops them."
)


def problems_screen(error: InvalidDesiredState, under: str = "") -> Screen:
    """Return every problem of a desired state with its place underlined, and how many there are.

    With `under`, the folder of the files, it also returns the findings.
    """
    lines: list[Line] = []
    for problem in error.problems:
        text = problem.message if problem.remedy is None else f"{problem.message} {problem.remedy}"
        lines += [(Span(problem.place, Tone.STRONG), Span(f"  {text}")), *excerpt(problem)]
    findings = list_unsilenced(error.findings) if under else ()
    lines += finding_lines(findings, under)
    lines += more_line(error.unlisted, plural(error.unlisted, "more problem"))
    number = len(error.problems) + error.unlisted
    total = (
        f"{counted(number, 'problem')} in {error.files_with_problems:,} of "
        + counted(error.files, "file")
        + (f", {counted(len(findings), 'finding')}" if findings else "")
        + f" ({counted(error.quotas, 'quota')} read)"
    )
    lines.append(line(total, Tone.REFUSAL))
    files = {problem.file for problem in error.problems}
    names = {Path(file).name for file in files}
    if names == {CODEOWNERS}:
        lines.append(line(UNREAD, Tone.CONTEXT))
    elif error.quotas and error.files_with_problems < error.files and CLUSTER_YAML in names:
        lines.append(line(STOPPED, Tone.CONTEXT))
    elif error.quotas and error.files_with_problems < error.files:
        others = {problem.other.file for problem in error.problems if problem.other} - files
        for file in sorted(file for file in others if Path(file).name != CLUSTER_YAML):
            words = f"Runs also leave out {file}, which contradicts a file above."
            lines.append(line(words, Tone.CONTEXT))
        lines.append(line(UNTIL_THEN, Tone.CONTEXT))
    return tuple(lines)


def plan_screen(report: Report, *, most: int | None = None) -> Screen:
    """Return what a run would change, whether the broker accepts it, and the guards that block it.

    `most` is the largest number of listed rows; None lists them all.
    """
    plan = report.plan
    if plan is None:
        return ()
    rows = report_rows(report)
    listed = [row for row in rows if row.section is not Section.REST]
    is_in_force = not find_overridden(report)
    folds, listed = fold_profiles(listed)
    left_out = 0 if most is None else len(listed) - most
    return (
        _heading(report, plan),
        line(),
        *map(_fold_line, folds),
        *plan_table(listed[:most]),
        *more_line(left_out, "more"),
        *([line()] if listed or folds else []),
        *overriding_lines(report),
        *([] if plan.writes else [line("No changes.", Tone.OK if is_in_force else Tone.REFUSAL)]),
        *topic_lines(report, AFTER_PLAN),
        *finding_lines(list_unsilenced(report.findings), most=FEW),
    )


def overriding_screen(report: Report, *, most: int) -> Screen:
    """Return the overriding quotas of a run without a plan, and the ways out."""
    rows = [row for row in report_rows(report) if row.overrides]
    more = more_line(len(rows) - most, "more")
    return (*plan_table(rows[:most]), *more, *overriding_lines(report))


def overriding_lines(report: Report) -> Screen:
    """Return the ways out of overriding quotas, as lines of a screen."""
    return tuple(line(words, Tone.CHANGE) for words in list_overriding_ways(report))


def _fold_line(fold: Fold) -> Line:
    first = fold.rows[0]
    values = f"{cells.current(first)} -> {cells.desired(first)}  {cells.change(first)}"
    return (
        Span(f"  {fold.profile}", Tone.STRONG),
        Span(f"  {first.difference.key}  {values}  ", Tone.CHANGE),
        Span(fold.list_entities(), Tone.CONTEXT),
    )


def _heading(report: Report, plan: Plan) -> Line:
    return (
        Span(report.cluster, Tone.STRONG),
        Span(f" ({plan.policy.cluster_id}) {at_commit(report.provenance)}", Tone.CONTEXT),
        Span(f"      plan {plan.digest[:SHORT]}      "),
        Span(plan_numbers(plan), Tone.CHANGE if plan.writes else Tone.OK),
    )


def plan_numbers(plan: Plan) -> str:
    """Return how many rows a plan changes, and how many it does not, by reason.

    `8 to change of 26 (6 to set, 2 to clear), 18 in sync, 1 unmanaged`: to change, in sync,
    overridden for some clients, held and only reported add up to the total; unmanaged and gone rows
    are not in it, and neither are rows that were not judged.
    """
    count = Counter(_part(row) for row in plan.differences)
    held, reported, gone = count["held"], count["only reported"], count["gone"]
    sets, clears, overriding = count[Action.SET], count[Action.CLEAR], count[Kind.OVERRIDING]
    both = f" ({sets:,} to set, {clears:,} to clear)" if sets and clears else ""
    held_overriding = sum(
        row.kind is Kind.OVERRIDING and bool(row.held) for row in plan.differences
    )
    held_words = f" ({held_overriding:,} held)" if held_overriding else ""
    override = plural(overriding, "overrides", "override")
    whole = sets + clears + plan.in_sync + plan.overridden + held + reported
    return (
        f"{sets + clears:,} to change of {whole:,}{both}, {plan.in_sync:,} in sync"
        + (f", {plan.overridden:,} overridden for some clients" if plan.overridden else "")
        + (f", {held:,} held" if held else "")
        + (f", {count['not judged']:,} not judged" if count["not judged"] else "")
        + (f", {reported:,} only reported" if reported else "")
        + (f", {gone:,} gone" if gone else "")
        + (f", {overriding:,} unmanaged that {override} Git{held_words}" if overriding else "")
        + f", {count['unmanaged']:,} {'other ' if overriding else ''}unmanaged"
    )


def _part(row: Difference) -> str:
    """Return the part of the heading that a row is counted in; empty for none."""
    if row.action in WRITES:
        return row.action
    if row.kind in {Kind.IN_SYNC, Kind.CLEARED}:
        return ""
    if row.kind is Kind.NOT_JUDGED:
        return "not judged"
    if row.action is Action.HELD:
        return "held"
    if row.kind in {Kind.UNMANAGED, Kind.OVERRIDING, Kind.GONE}:
        return row.kind
    return "only reported"


def apply_screen(report: Report, *, most: int) -> Screen:
    """Return the number of keys with each outcome, and at most `most` unconfirmed rows."""
    keys: Counter[str] = Counter()
    for outcome in report.applied:
        when = "" if outcome.earlier is None else " earlier"
        keys[f"{outcome.status}{when}"] += len(outcome.keys)
    total = ", ".join(f"{number:,} {status.replace('_', ' ')}" for status, number in keys.items())
    rows = [row for row in report_rows(report) if row.status is RowStatus.UNSETTLED]
    is_whole = AS_INTENDED.issuperset(outcome.status for outcome in report.applied)
    tone = Tone.OK if is_whole else Tone.REFUSAL
    return (
        line(f"applied: {total or 'nothing'}", tone),
        *plan_table(rows[:most], applied=True),
        *more_line(len(rows) - most, "more"),
    )


def verify_screen(report: Report) -> Screen:
    """Return a line for each broker."""
    return tuple(
        line(describe_broker(broker), Tone.OK if broker.agrees else Tone.REFUSAL)
        for broker in report.verification.brokers
    )


def verdicts_screen(report: Report, *, most: int) -> Screen:
    """Return each row that differs on a broker: the desired value, and each broker's value."""
    rows = [row for row in report_rows(report) if row.verdict is not None and row.verdict.seen]
    wrong = (
        line(
            f"{escape_text(row.difference.entity)}  {escape_text(row.difference.key)}  desired "
            f"{format_limit(row.difference.key, row.verdict and row.verdict.expected)}: "
            f"{trouble(row)}",
            Tone.REFUSAL,
        )
        for row in rows[:most]
    )
    return (*wrong, *more_line(len(rows) - most, "more"))


def verified_line(report: Report) -> Line:
    """Return how many quotas every broker that responded stores, and whether they are in force."""
    read = report.verification
    responding = sum(broker.lagging is not None for broker in read.brokers)
    if responding == 0:
        return line("No broker responded.", Tone.REFUSAL)
    missing = len(read.brokers) - responding
    where = f"on each of the {responding} that responded" if missing else "on every broker"
    if not missing and report.metadata and report.metadata.complete is False:
        where += " known"
    if read.brokers[0].bootstrap:
        where = "at the bootstrap address"
    whole = missing == 0 and not read.verdicts and not find_overridden(report)
    words = f"{read.verified:,} of {counted(read.compared, 'quota')} verified {where}"
    words += f"{_describe_in_force(report)}."
    if read.verified and read.addresses:
        of = plural(read.addresses, "one IP address", f"{read.addresses:,} IP addresses")
        words += f" No broker shows whether another spelling of {of} was cleared since."
    if skipped := read.skipped:
        words += f" {skipped:,} {plural(skipped, 'was', 'were')} skipped"
        lost = len(find_overridden(report)) - count_not_in_force(report)
        lost_words = f", {lost:,} of which {plural(lost, 'is', 'are')} not in force for all clients"
        words += f"{lost_words if lost and not read.verdicts else ''}."
    return line(words, Tone.OK if whole else Tone.REFUSAL)


def _describe_in_force(report: Report) -> str:
    """Return what was verified: that the quotas are stored, and that they are in force."""
    if report.verification.verified == 0:
        return ""
    if report.overrides is None:
        return ": stored"
    if overridden := count_not_in_force(report):
        others = plural(overridden, "is not", "are not")
        pairs = (*report.overrides, *report.leaving)
        if pairs and all(find_respelled((row,)) for row in pairs):
            others = "may not be"
        return f": stored, but {overridden:,} {others} in force for all clients"
    words = ": stored and in force"
    if report.protected:
        words += (
            f", except where protected quotas come first: {name_protected(report, escape_text)}"
        )
    return words


def finished_line(report: Report, place: str) -> Line:
    """Return the last line of a run: the changes applied now and earlier, and the report's path."""
    done = [outcome for outcome in report.applied if outcome.status is Status.ACCEPTED]
    now, before = (
        [outcome for outcome in done if (outcome.earlier is None) is new] for new in (True, False)
    )
    seconds = duration(sum(stage.seconds or 0.0 for stage in report.stages))
    unknown = [outcome for outcome in report.applied if outcome.status is Status.UNKNOWN]
    nothing = "no changes confirmed" if unknown else "no changes written"
    parts = [f"applied {_keys(now)} in {seconds}" if now else f"{nothing} in {seconds}"]
    if unknown:
        parts.append(f"unknown: {_keys(unknown)}")
    if before:
        approval = "" if now else describe_approval(report)
        approved = f" ({approval})" if approval else ""
        parts.append(f"written earlier: {_keys(before)}{approved}")
    if found := [outcome for outcome in report.applied if outcome.status is Status.ALREADY]:
        parts.append(f"already stored: {_keys(found)}")
    if brokers := report.verification.brokers:
        parts.append(describe_brokers(brokers))
    whole = AS_INTENDED.issuperset(outcome.status for outcome in report.applied) and all(
        broker.agrees for broker in brokers
    )
    guarded = report.plan and report.plan.refused
    whole &= not (stopped_stages(report) or guarded or list_unread_rows(report))
    return line("; ".join([*parts, f"report: {place}"]), Tone.OK if whole else Tone.REFUSAL)


def _keys(outcomes: Sequence[Outcome]) -> str:
    keys, entities = (
        sum(len(outcome.keys) for outcome in outcomes),
        {outcome.entity for outcome in outcomes},
    )
    return f"{counted(keys, 'key')} on {counted(len(entities), 'entity')}"
