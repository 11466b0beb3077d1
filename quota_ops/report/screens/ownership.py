"""The screens of adopt and release: each row, and the effect of the next run on it."""

from collections.abc import Iterable, Mapping, Sequence

from quota_ops.model.plans.hold import Hold, find_hold
from quota_ops.model.plans.ledger_edits import CLEARED
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.quotas.rows import DesiredRow, Key, LedgerRow
from quota_ops.model.runs.ownership import Adoption
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.layout import Row, Screen, Span, Table, Tone, line


def adopted_screen(
    where: str, found: Sequence[Adoption], standstill: str | None, holds: Sequence[Hold]
) -> Screen:
    """Return the rows to adopt, and what the next run does with each.

    `standstill` and `holds` are as in `format_adopted`.
    """
    adopted, managed = (
        sum(adoption.adopted for adoption in found),
        sum(adoption.was_managed for adoption in found),
    )
    before = f", {managed:,} {plural(managed, 'was', 'were')} managed already" if managed else ""
    rows = tuple(
        _adopted_row(adoption, format_adopted(adoption, standstill, holds)) for adoption in found
    )
    headings = ("entity", "key", "value", "next")
    heading = f"{where}: {counted(adopted, 'quota')} adopted{before}; the cluster was not changed"
    return (line(heading, Tone.STRONG), *_listed(headings, rows))


def _adopted_row(adoption: Adoption, fate: str) -> Row:
    cells = map(Span, (adoption.entity, adoption.key, format_limit(adoption.key, adoption.value)))
    return Row((*cells, Span(fate, Tone.CHANGE if _moves(adoption) else Tone.CONTEXT)))


def _listed(headings: tuple[str, ...], rows: tuple[Row, ...]) -> Screen:
    return (line(), Table(headings, rows)) if rows else ()


def _moves(adoption: Adoption) -> bool:
    return adoption.refusal is None and (
        adoption.declared is None or adoption.declared.value != adoption.value
    )


def format_adopted(adoption: Adoption, standstill: str | None, holds: Sequence[Hold] = ()) -> str:
    """Return what the next run does with a row to adopt, while these holds last.

    `standstill` is the cluster's name and why nothing may be written now; None if it may.
    """
    if adoption.refusal is not None:
        return f"not adopted: {adoption.refusal}"
    hold = find_hold(holds, Entity.parse(adoption.entity))
    kept = f"it is {hold.text}" if hold else standstill
    if adoption.declared is None:
        return f"Git does not declare it: {_next('clears', kept)}"
    place = f"{adoption.declared.file}:{adoption.declared.line} declares"
    if adoption.declared.value == adoption.value:
        return f"as {place}"
    return f"{place} {format_limit(adoption.key, adoption.declared.value)}: {_next('sets', kept)}"


def _next(does: str, kept: str | None) -> str:
    if kept is not None:
        return f"no reconcile {does} it while {kept}"
    return f"the next reconcile {does} it, unless a guard blocks it or it needs approval"


def released_screen(where: str, rows: Sequence[tuple[LedgerRow, str]]) -> Screen:
    """Return the released rows, each with what the next run does with it."""
    table = tuple(
        Row(
            (
                *map(Span, (row.entity, row.key, format_limit(row.key, row.value), row.state)),
                Span(fate, Tone.CONTEXT),
            )
        )
        for row, fate in rows
    )
    released = describe_released((row.id, row.state) for row, _ in rows)
    heading = f"{where}: {released}; the cluster was not changed"
    headings = ("entity", "key", "value", "state", "next")
    return (line(heading, Tone.STRONG), *_listed(headings, table))


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


def format_released(
    row: LedgerRow,
    declared: Mapping[Key, DesiredRow],
    *,
    clear_unmanaged: bool,
    hold: Hold | None,
    why: str | None,
    standstill: str | None = None,
) -> str:
    """Return what the next run does with a row that was removed from the ledger.

    `declared` are the rows of Git, by entity and key. `hold` is the hold on its entity, and `why`
    the reason why no plan may write it; `standstill` is as in `format_adopted`.
    """
    if row.state == CLEARED:
        return "no longer remembered: if the value comes back, no run is named"
    declared_row = declared.get(row.id)
    kept = f"it is {hold.text}" if hold else standstill
    held = f", but not while {kept}" if kept else ""
    if declared_row is not None:
        place = f"{declared_row.file}:{declared_row.line}"
        return f"{place} declares it: the next reconcile manages it again{held}"
    if why is not None:
        return f"unmanaged: reported, and left alone ({why})"
    if clear_unmanaged:
        return f"unmanaged; because of clear_unmanaged, a reconcile clears it{held}"
    return "unmanaged: reported, and left alone"
