"""The outline of a report: what there is to say besides its tables, in the order of every output.

`list_blocks` decides what is shown, in what order and how serious it is. Text, Markdown and the
page decide only how a block looks.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from quota_ops.model.plans.guard import Guard, GuardFinding, format_override
from quota_ops.model.plans.plan import Plan
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.stages import STOPPED, Life, StageResult, StageStatus, name_end
from quota_ops.model.text import counted, plural
from quota_ops.report.outline import effects, sentences, throttling
from quota_ops.report.outline.brokers import describe_broker
from quota_ops.report.outline.layout import Line, Span, Tone, line
from quota_ops.report.outline.policy_changes import compare_policies, format_changes
from quota_ops.report.outline.rollback import describe_left, describe_rollback

MOST_LINES = 8

_VERBS: dict[str, str] = {StageStatus.FAILED: "", Life.RUNNING: "is "}
"""The verb before how a stage stopped, in a sentence; `was` before all others."""


def stopped_stages(report: Report) -> tuple[StageResult, ...]:
    """Return the stages that stopped the run, except a plan that guards block."""
    guarded = {"plan"} if report.plan and report.plan.refused else set()
    return tuple(
        stage for stage in report.stages if _has_stopped(stage) and stage.stage not in guarded
    )


def stages_not_run(report: Report) -> tuple[str, ...]:
    """Return the stages that did not run because an earlier one stopped the run."""
    if not any(map(_has_stopped, report.stages)):
        return ()
    return tuple(stage.stage for stage in report.stages if stage.status is StageStatus.NOT_RUN)


def _has_stopped(stage: StageResult) -> bool:
    return stage.status in STOPPED


def describe_stop(report: Report) -> str | None:
    """Return the first stage that stopped the run (`apply failed`); None if none did."""
    for stage in stopped_stages(report):
        how = name_stop(report, stage)
        return f"{stage.stage} {_VERBS.get(how, 'was ')}{how}"
    return None


def name_stop(report: Report, stage: StageResult) -> str:
    """Return how a stage stopped; one without an end has the status of its run."""
    if stage.status is StageStatus.NOT_ENDED and report.life:
        return report.life
    return name_end(stage, report.applied)


def stage_lines(stage: StageResult) -> list[str]:
    """Return why a stage stopped; omits the middle of a long message, which the rows repeat."""
    lines = [text.strip() for text in (stage.message or "no reason was given").split("\n")]
    if len(lines) <= MOST_LINES:
        return lines
    cut = len(lines) - MOST_LINES + 1
    return [*lines[: MOST_LINES - 2], f"… {cut:,} more lines", lines[-1]]


class Topic(Enum):
    """What a block is about, in the order of the outline."""

    STOP = auto()
    VALIDATION = auto()
    CLIENTS = auto()
    THROTTLING = auto()
    WARNING = auto()
    PROTECTED = auto()
    LEDGER = auto()
    STANDSTILL = auto()
    HOLD = auto()
    GUARD = auto()
    OVERRIDE = auto()
    ROLLBACK = auto()
    APPROVAL = auto()
    BROKER = auto()


# What each output shows of the outline; it has the other topics in a table, or elsewhere.
IN_TEXT = frozenset(Topic) - {Topic.VALIDATION, Topic.ROLLBACK, Topic.BROKER}
ON_PAGE = frozenset(Topic) - {Topic.HOLD}
AFTER_PLAN = frozenset(Topic) - {Topic.STOP, Topic.ROLLBACK, Topic.APPROVAL, Topic.BROKER}
AFTER_VERIFY = frozenset({Topic.WARNING, Topic.HOLD})
IN_REVIEW = frozenset({Topic.VALIDATION, Topic.CLIENTS, Topic.THROTTLING})
ABOVE_APPROVAL = frozenset({Topic.VALIDATION, Topic.CLIENTS})


class Block(NamedTuple):
    """A title, if the lines need one, and lines; `way` are words, options, and words after them."""

    topic: Topic
    tone: Tone
    title: str
    lines: tuple[str, ...]
    way: tuple[str, str, str] | None = None


def list_blocks(report: Report, quoted: Callable[[str], str] = str) -> Iterator[Block]:
    """Yield the blocks; `quoted` is applied to text from outside quota-ops."""
    yield from _list_stops(report, quoted)
    yield from _list_effects(report, quoted)
    for words in sentences.warnings(report, quoted):
        yield Block(Topic.WARNING, Tone.CHANGE, "", (words,))
    yield from _list_limits(report, quoted)
    for words in sentences.describe_holds(report):
        yield Block(Topic.HOLD, Tone.CHANGE, "", (quoted(words),))
    if report.plan:
        yield from _list_guards(report, report.plan, quoted, in_dag=report.dag_id is not None)
    if report.rollback and report.plan:
        for words in (describe_rollback(report.rollback), *describe_left(report.rollback)):
            yield Block(Topic.ROLLBACK, Tone.PLAIN, "", (quoted(words),))
    if words := sentences.describe_approval(report):
        yield Block(Topic.APPROVAL, Tone.PLAIN, "", (quoted(words),))
    for broker in report.verification.brokers:
        if not broker.agrees:
            yield Block(Topic.BROKER, Tone.REFUSAL, "", (quoted(describe_broker(broker)),))


def _list_stops(report: Report, quoted: Callable[[str], str]) -> Iterator[Block]:
    for stage in stopped_stages(report):
        title = f"{stage.stage} {name_stop(report, stage)}"
        yield Block(Topic.STOP, Tone.REFUSAL, title, tuple(map(quoted, stage_lines(stage))))
    if skipped := stages_not_run(report):
        yield Block(Topic.STOP, Tone.CHANGE, "not run", (", ".join(skipped),))


def _list_effects(report: Report, quoted: Callable[[str], str]) -> Iterator[Block]:
    if words := sentences.describe_validated(report):
        tone = Tone.OK if sentences.is_accepted(report) else Tone.REFUSAL
        yield Block(Topic.VALIDATION, tone, "", (words,))
    if words := effects.describe_inventory(report.clients):
        yield Block(Topic.CLIENTS, effects.inventory_tone(report.clients), "", (words,))
    for words in throttling.describe_throttling(report.throttling):
        yield Block(Topic.THROTTLING, Tone.CHANGE, "", (quoted(words),))


def _list_limits(report: Report, quoted: Callable[[str], str]) -> Iterator[Block]:
    if protected := sentences.describe_protected(report):
        words = f"{protected}: {sentences.name_protected(report, quoted)}."
        yield Block(Topic.PROTECTED, Tone.PLAIN, "", (words,))
    if words := sentences.describe_lost_ledger(report):
        yield Block(Topic.LEDGER, Tone.PLAIN, "", (words,))
    if report.plan and (stopped := sentences.describe_standstill(report.plan)):
        yield Block(Topic.STANDSTILL, Tone.REFUSAL, "", (quoted(stopped),))


def _list_guards(
    report: Report, plan: Plan, quoted: Callable[[str], str], *, in_dag: bool
) -> Iterator[Block]:
    for guard in plan.guards:
        yield make_guard_block(guard, quoted, *list_settings(plan, guard, quoted))
    if names := list(dict.fromkeys(guard.guard for guard in plan.refused)):
        number = len(names)
        words = f"{counted(number, 'guard')} {plural(number, 'blocks', 'block')} this plan."
        override = f"Override {plural(number, 'it', 'them')} with"
        way = override, format_override(*names), f"({sentences.in_jobs(plan)})."
        stopped = any(stage.status in STOPPED for stage in report.stages)
        how = "trigger a new run, and decide there" if stopped else sentences.in_airflow(plan)
        there = f"In Airflow, {how}." if in_dag else ""
        lines = (
            " ".join(filter(None, (words, sentences.describe_repairs(report, quoted), there))),
        )
        yield Block(Topic.OVERRIDE, Tone.REFUSAL, "", lines, None if in_dag else way)


def make_guard_block(guard: GuardFinding, quoted: Callable[[str], str], *more: str) -> Block:
    """Return a guard's finding, and the reason for its override if it was overridden."""
    tone = Tone.REFUSAL if guard.allowed is None else Tone.CONTEXT
    passed = "" if guard.allowed is None else f" (overridden: {quoted(guard.allowed)})"
    return Block(Topic.GUARD, tone, guard.guard, (f"{quoted(guard.message)}{passed}", *more))


def list_settings(plan: Plan, guard: GuardFinding, quoted: Callable[[str], str] = str) -> list[str]:
    """Return what differs from the policy that was last applied, if that is what a guard found."""
    if guard.guard != Guard.POLICY_CHANGED:
        return []
    return format_changes(compare_policies(plan.applied_policy, plan.policy), quoted)


def topic_lines(report: Report, topics: Container[Topic]) -> Iterator[Line]:
    """Yield the blocks of some topics as lines of a screen."""
    return block_lines(block for block in list_blocks(report) if block.topic in topics)


def block_lines(blocks: Iterable[Block]) -> Iterator[Line]:
    """Yield the blocks as lines of a screen; further lines of a block are indented."""
    for block in blocks:
        first, *rest = block.lines
        first = " ".join((first, *(block.way or ())))
        title = (Span(block.title, block.tone), Span(f": {first}")) if block.title else None
        yield title or line(first, block.tone)
        yield from (line(f"  {text}") for text in rest)
