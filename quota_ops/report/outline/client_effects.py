"""The effects of a plan on the clients of an inventory, in words and as a table."""

from collections.abc import Iterable, Sequence

from quota_ops.model.plans.client_effects import ClientEffectRow, InventoryEffects, OwnerEffects
from quota_ops.model.plans.effect import LimitChange
from quota_ops.model.quotas.entity import ENTITY_TYPES, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, UNLIMITED, format_limit
from quota_ops.model.text import counted, name_first, plural
from quota_ops.report.outline.layout import Row, Screen, Span, Table, Tone, line, more_line

_VERDICTS = (
    *("newly limited", "cut", "may get less", "may get more"),
    *("shared differently", "raised", "no longer limited"),
)
_RANK = {name: rank for rank, name in enumerate((*_VERDICTS, LimitChange.SAME))}
_TONES = {LimitChange.NEWLY_LIMITED: Tone.REFUSAL, LimitChange.CUT: Tone.REFUSAL}


def describe_inventory(effects: InventoryEffects | None) -> str:
    """Return the numbers of clients in a sentence or two; empty if there is no inventory.

    `Of 50,000 clients in the inventory: 1,204 newly limited, 12 cut. 7 of them use more than their
    new limits.`
    """
    if effects is None:
        return ""
    if effects.trouble:
        return f"The clients of the inventory are not counted: {effects.trouble}"
    total = effects.total
    by_verdict = zip(_VERDICTS, _count_by_verdict(total), strict=True)
    numbers = [f"{number:,} {verdict}" for verdict, number in by_verdict if number]
    clients = counted(total.clients, "client")
    words = f"Of {clients} in the inventory: {', '.join(numbers)}."
    if not numbers:
        words = f"No limit of the {clients} in the inventory changes."
    if total.throttled:
        words += f" {total.throttled:,} of them {plural(total.throttled, 'uses', 'use')} more than "
        words += plural(total.throttled, "its new limit.", "their new limits.")
    if agreed := effects.agreed:
        restore = f"{counted(agreed, 'change')} that {plural(agreed, 'restores', 'restore')}"
        words += f" Not counted: {restore} an earlier value."
    return words


def _count_by_verdict(owner: OwnerEffects) -> tuple[int, ...]:
    return tuple(getattr(owner, verdict.replace(" ", "_")) for verdict in _VERDICTS)


def inventory_tone(effects: InventoryEffects | None) -> Tone:
    """Return the tone of the sentence: a change if clients lose, or are not counted."""
    is_losing = effects and (effects.trouble or effects.total.losing)
    return Tone.CHANGE if is_losing else Tone.PLAIN


def rank_by_loss(row: ClientEffectRow) -> tuple[bool, int, str, str, str]:
    """Return a sort key: clients that would be throttled first, then those that lose."""
    return not row.throttled, _RANK[row.verdict], row.user, row.client_id, row.key


def describe_foreign_rows(stored: Iterable[tuple[str, str]]) -> str:
    """Return a warning about stored limits, by entity and key, that the effects omit, or "".

    Their entity types are unknown to Apache Kafka, so a broker that knows them may apply them.
    """
    entities = {entity for entity, key in stored if key in CLIENT_KEYS}
    foreign = sorted(text for text in entities if set(Entity.parse(text).types) - {*ENTITY_TYPES})
    if not foreign:
        return ""
    return (
        f"The table leaves out the limits of {name_first(foreign)}, because Apache Kafka does not "
        "have that type of entity. A broker that has it may apply them to clients of the table."
    )


def client_effects_screen(
    heading: str,
    rows: Sequence[ClientEffectRow],
    effects: InventoryEffects,
    *,
    every_limit: bool = False,
) -> Screen:
    """Return the changed limits of clients, the numbers by owner, and the sentence.

    `rows` are the first of them. With `every_limit`, those that stay have rows too.
    """
    total = effects.total
    left_out = (total.clients * len(CLIENT_KEYS) if every_limit else total.keys) - len(rows)
    return (
        line(heading, Tone.STRONG),
        *((line(), Table(_HEADINGS, tuple(map(_effect_row, rows)))) if rows else ()),
        *more_line(left_out, "more; --format json has them all"),
        *((line(), _owner_table(effects)) if total.keys else ()),
        line(),
        line(describe_inventory(effects), inventory_tone(effects)),
    )


_HEADINGS = ("verdict", "user", "client id", "key", "current", "desired", "use", "owner")


def _effect_row(row: ClientEffectRow) -> Row:
    tone = _TONES.get(LimitChange(row.verdict), Tone.PLAIN)
    before = _format_side(row.key, row.before, row.before_level, row.before_entity)
    after = _format_side(row.key, row.after, row.after_level, row.after_entity)
    cells = (row.user, row.client_id, row.key, before, after, _format_use(row), row.owner or "")
    return Row((Span(row.verdict, tone), *map(Span, cells)))


def _format_side(key: str, value: float | None, level: str | None, entity: str | None) -> str:
    limit = UNLIMITED if value is None else format_limit(key, value)
    return limit if entity is None else f"{limit} of {entity} ({level})"


def _format_use(row: ClientEffectRow) -> str:
    """Return what the clients that share the limit use, and how much they may use more."""
    if row.used is None or row.head_room is None:
        return "" if row.observed is None else format_limit(row.key, row.observed)
    used = format_limit(row.key, row.used)
    if row.throttled:
        return f"{used}: would be throttled"
    return f"{used}, {format_limit(row.key, row.head_room)} left"


def _owner_table(effects: InventoryEffects) -> Table:
    headings = ("owner", "clients", *_VERDICTS, "would be throttled")
    return Table(headings, tuple(_owner_row(owner) for owner in effects.owners if owner.keys))


def _owner_row(owner: OwnerEffects) -> Row:
    numbers = (owner.clients, *_count_by_verdict(owner), owner.throttled)
    return Row((Span(owner.owner or "no owner"), *(Span(f"{number:,}") for number in numbers)))
