"""The screens of adopt and release: each row, and the effect of the next run on it."""

from collections.abc import Iterable, Sequence

from quota_ops.desired.export.one_off import OneOff
from quota_ops.model.plans.ledger_edits import CLEARED
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import Key, LedgerRow
from quota_ops.model.runs.adoption import Adoption
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.layout import Cells, Screen, Span, Table, Tone, line


def adopted_screen(where: str, found: Sequence[Adoption], fates: Iterable[str]) -> Screen:
    """Return the rows to adopt, and what the next run does with each."""
    adopted, managed = (
        sum(adoption.adopted for adoption in found),
        sum(adoption.was_managed for adoption in found),
    )
    before = f", {managed:,} {plural(managed, 'was', 'were')} managed already" if managed else ""
    rows = [
        (
            *(row.entity, row.key, format_limit(row.key, row.value)),
            Span(fate, Tone.CHANGE if _moves(row) else Tone.CONTEXT),
        )
        for row, fate in zip(found, fates, strict=True)
    ]
    heading = f"{where}: {counted(adopted, 'quota')} adopted{before}; the cluster was not changed"
    return _make_screen(heading, ("entity", "key", "value", "next"), rows)


def _make_screen(heading: str, headings: tuple[str, ...], rows: Sequence[Cells]) -> Screen:
    return (line(heading, Tone.STRONG), *((line(), Table.of(headings, rows)) if rows else ()))


def _moves(adoption: Adoption) -> bool:
    return adoption.refusal is None and (
        adoption.declared is None or adoption.declared.value != adoption.value
    )


def format_adopted(adoption: Adoption, git: OneOff) -> str:
    """Return what the next run does with a row to adopt, by the comparison after it."""
    if adoption.refusal is not None:
        return f"not adopted: {adoption.refusal}"
    return git.describe_effect(adoption.id, adoption.value)


def released_screen(where: str, rows: Sequence[tuple[LedgerRow, str]]) -> Screen:
    """Return the released rows, each with what the next run does with it."""
    cells = [
        (
            *(row.entity, row.key, format_limit(row.key, row.value), row.state),
            Span(fate, Tone.CONTEXT),
        )
        for row, fate in rows
    ]
    released = describe_released((row.id, row.state) for row, _ in rows)
    heading = f"{where}: {released}; the cluster was not changed"
    return _make_screen(heading, ("entity", "key", "value", "state", "next"), cells)


def describe_released(rows: Iterable[tuple[Key, str]]) -> str:
    """Return how many quotas and earlier values were released, given the id and state of rows."""
    quotas, past = set[Key](), 0
    for key, state in rows:
        if state == CLEARED:
            past += 1
        else:
            quotas.add(key)
    forgotten = f", {counted(past, 'earlier value')} forgotten" if past else ""
    return f"{counted(len(quotas), 'quota')} released{forgotten}"


def format_released(row: LedgerRow, git: OneOff) -> str:
    """Return what the next run does with a row that left the ledger, by the comparison after it."""
    if row.state == CLEARED:
        return "no longer remembered: if the value comes back, no run is named"
    return git.describe_effect(row.id, row.value)
