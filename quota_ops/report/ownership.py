"""What people read when rows went into the ledger or out of it, and what the next run does."""

from collections.abc import Mapping, Sequence

from quota_ops.model.entity import Entity
from quota_ops.model.hold import Hold, hold_on
from quota_ops.model.memory import REMEMBERED
from quota_ops.model.ownership import Adoption
from quota_ops.model.quota import format_limit
from quota_ops.model.rows import DesiredRow, Key, LedgerRow
from quota_ops.model.text import counted, plural
from quota_ops.report.screen import Row, Screen, Span, Table, Tone, line

Asked = Mapping[Key, DesiredRow]
"""What Git asks for, by entity and key."""
_NONE = "no quota of that name: check the spelling."


def adopted_screen(
    where: str,
    found: Sequence[Adoption],
    standstill: str | None,
    holds: Sequence[Hold],
    *,
    named: bool,
) -> Screen:
    """The rows that were looked at, and what the next run does with each.

    `standstill` and `holds` as `adopted_fate` takes them; `named` is whether somebody said whose,
    so that none at all may be a slip.
    """
    adopted, ours = (sum(getattr(one, what) for one in found) for what in ("adopted", "ours"))
    before = f", {ours:,} {plural(ours, 'was', 'were')} managed already" if ours else ""
    rows = tuple(_adopted_row(one, adopted_fate(one, standstill, holds)) for one in found)
    headings = ("entity", "key", "value", "next")
    heading = f"{where}: {counted(adopted, 'quota')} adopted{before}; the cluster was not touched"
    slip = f"The cluster stores {_NONE}" if named else None
    return (line(heading, Tone.STRONG), *_listed(headings, rows, slip))


def _adopted_row(one: Adoption, fate: str) -> Row:
    cells = map(Span, (one.entity, one.key, format_limit(one.key, one.value)))
    return Row((*cells, Span(fate, Tone.CHANGE if _moves(one) else Tone.CONTEXT)))


def _listed(headings: tuple[str, ...], rows: tuple[Row, ...], slip: str | None) -> Screen:
    """The rows as a table; where there are none, what may have been the slip."""
    if rows:
        return (line(), Table(headings, rows))
    return (line(slip, Tone.CONTEXT),) if slip else ()


def _moves(one: Adoption) -> bool:
    return one.refusal is None and (one.asked is None or one.asked.value != one.value)


def adopted_fate(one: Adoption, standstill: str | None, holds: Sequence[Hold] = ()) -> str:
    """What becomes of a row that was to be adopted, while these holds last.

    `standstill` is the cluster's name and why nothing may be written; None where it may.
    """
    if one.refusal is not None:
        return f"not adopted: {one.refusal}"
    hold = hold_on(holds, Entity.parse(one.entity))
    kept = f"it is {hold.text}" if hold else standstill
    if one.asked is None:
        return f"Git does not declare it: {_next('clears', kept)}"
    place = f"{one.asked.file}:{one.asked.line} declares"
    if one.asked.value == one.value:
        return f"as {place}"
    return f"{place} {format_limit(one.key, one.asked.value)}: {_next('sets', kept)}"


def _next(does: str, kept: str | None) -> str:
    if kept is not None:
        return f"no reconcile {does} it while {kept}"
    return f"the next reconcile {does} it, unless a guard blocks it or it needs approval"


def released_screen(where: str, rows: Sequence[tuple[LedgerRow, str]], *, named: bool) -> Screen:
    """The rows that the ledger knew, each with what the next run makes of it.

    `named` as `adopted_screen` takes it.
    """
    table = tuple(
        Row(
            (
                *map(Span, (one.entity, one.key, format_limit(one.key, one.value), one.state)),
                Span(fate, Tone.CONTEXT),
            )
        )
        for one, fate in rows
    )
    number = len({one.id for one, _ in rows})
    heading = f"{where}: {counted(number, 'quota')} released; the cluster was not touched"
    headings = ("entity", "key", "value", "known as", "next")
    slip = f"The ledger has {_NONE}" if named else None
    return (line(heading, Tone.STRONG), *_listed(headings, table, slip))


def released_fate(
    row: LedgerRow,
    asked: Asked,
    *,
    clear_unmanaged: bool,
    hold: Hold | None,
    why: str | None,
    standstill: str | None = None,
) -> str:
    """What becomes of a row that the ledger has forgotten.

    `hold` is who holds its entity now, `why` says why no plan could write it; `standstill` as
    `adopted_fate` takes it.
    """
    if row.state in REMEMBERED:
        return "no longer remembered: no run is named if it comes back"
    described = asked.get(row.id)
    kept = f"it is {hold.text}" if hold else standstill
    held = f", but not while {kept}" if kept else ""
    if described is not None:
        place = f"{described.file}:{described.line}"
        return f"{place} declares it: the next reconcile manages it again{held}"
    if why is not None:
        return f"unmanaged: reported, and left alone ({why})"
    if clear_unmanaged:
        return f"unmanaged; because of clear_unmanaged, a reconcile clears it{held}"
    return "unmanaged: reported, and left alone"
