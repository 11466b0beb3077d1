"""The rows that a run rolls back or leaves unchanged, as sentences and as a table."""

from collections.abc import Iterator
from shlex import quote

from quota_ops.model.commit import is_git, named
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.specification import format_flags
from quota_ops.model.runs.rollback import Rollback
from quota_ops.model.text import command, counted, is_visible
from quota_ops.report.outline.layout import Cells, Screen, Span, Table, Tone, line

MOST = 20
"""The most unchanged rows that are listed."""
_HEADINGS = ("entity", "key", "before", "set by the run", "now", "left unchanged because")


def describe_rollback(rollback: Rollback) -> str:
    """Return the summary: the person, the rows, the run that is rolled back, and the reason."""
    number = len(rollback.left)
    left = f", {number:,} left unchanged" if number else ""
    why = f": {rollback.reason}" if rollback.reason else ""
    return (
        f"{rollback.by} rolls back {len(rollback.taken):,} of "
        f"{counted(len(rollback.rows), 'change')} of run {rollback.run}{left}{why}"
    )


def rollback_screen(rollback: Rollback) -> Screen:
    """Return the summary, and each unchanged row with its current value."""
    rows: list[Cells] = [
        (
            *(Span(row.entity, Tone.STRONG), row.key),
            *(format_limit(row.key, value) for value in (row.before, row.after, row.now)),
            Span(row.left or "", Tone.CHANGE),
        )
        for row in rollback.left
    ]
    words = line(f"{describe_rollback(rollback)}.", Tone.STRONG)
    return (words, *((Table.of(_HEADINGS, rows),) if rows else ()))


def describe_left(rollback: Rollback) -> Iterator[str]:
    """Yield a line for each unchanged row, at most `MOST`, then one with the number of others."""
    for row in rollback.left[:MOST]:
        now = format_limit(row.key, row.now)
        yield f"left unchanged: {row.entity} {row.key}, now {now}: {row.left}"
    if more := len(rollback.left[MOST:]):
        yield f"and {more:,} more left unchanged; report.json has them all"


def list_next_steps(rollback: Rollback, cluster: str, run: str) -> Iterator[str]:
    """Yield what the next runs do to the rows of the rollback `run`, and how to prevent it."""
    if not rollback.taken:
        return
    if rollback.commit is None:
        yield (
            "To keep it, change these quotas in Git too: otherwise the next run "
            f"{_again(rollback)}."
        )
    else:
        yield (
            f"To keep it, change these quotas in Git too{_revert(rollback.commit, cluster)} a "
            "run at a commit that was applied before is blocked by guard went_back; "
            f"one at a new commit {_again(rollback)}."
        )
    first, *others = [Entity.parse(text) for text in {row.entity: 0 for row in rollback.taken}]
    is_typed = not others and all(is_visible(name or "") for _, name in first.parts)
    which = format_flags(first) if is_typed else f"--run {quote(run)}"
    number = counted(1 + len(others), "entity")
    held = f"these {number}, once they are" if others else "it, once it is"
    yield (
        f"To let runs repair drift of all others, hold {held} written: "
        f"quota-ops hold {quote(cluster)} {which} --until 12h --reason TEXT"
    )


def _revert(commit: str, cluster: str) -> str:
    """Return how to make Git agree, and the first words of the sentence that follows."""
    if is_git(commit):
        return f", in a new commit (the run was of {named(commit)}). Until then"
    return (
        ". The run that is rolled back was a rollback itself, so there is no commit to revert: "
        f"{command('plan', cluster)} shows whether Git differs. If it does,"
    )


def _again(rollback: Rollback) -> str:
    """Return the effect of a run at a new commit; rows that were taken over are unmanaged again."""
    over = sum(row.foreign and row.after is not None for row in rollback.taken)
    person = f" once a person overrides guard takeover for {counted(over, 'quota')}"
    return f"sets it again{person if over else ''}"
