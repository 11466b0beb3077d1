"""The effects of changed quotas on clients, in words, and as a table for an inventory."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from quota_ops.model.plans.client_effects import ClientEffectRow, InventoryEffects, OwnerEffects
from quota_ops.model.plans.effect import ClassEffect, Effect, Limit, LimitChange
from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, UNLIMITED, format_limit
from quota_ops.model.text import counted, name_first, plural
from quota_ops.report.outline import cells
from quota_ops.report.outline.formats import escape_text, format_rate, shortened
from quota_ops.report.outline.layout import Cells, Screen, Span, Table, Tone, line, more_line
from quota_ops.report.outline.row_status import ReportRow

NO_EFFECT = "no effect: other limits come first for all of its clients"
_SENDS = {True: "clients with a client id", False: "clients without a client id"}
_CLEAR = {LimitChange.NEWLY_LIMITED, LimitChange.NO_LONGER_LIMITED}
"""Changes that need no words about who shares the limit: the values say enough."""
Sharing = Mapping[tuple[str, ...], str]
_LONGEST_NAME = 60


def effect_parts(row: ReportRow) -> list[str]:
    """Return what a row does to which clients, in parts; empty if its values show it.

    For an overriding row, these are the clients that it takes from a quota of Git.
    """
    if row.effect is None:
        return [*filter(None, (cells.overriding(row),))]
    parts = list_effects(row.effect, row.difference.entity, row.difference.key, row.undeclared)
    return [*map(escape_text, parts)]


def list_effects(
    found: Effect, entity: str, key: str, undeclared: Collection[str] = frozenset()
) -> list[str]:
    """Return what a change of an entity's key does: to each class of clients, then to all others.

    The limits of `undeclared` entities are marked: Git does not declare them.

    `raised: every user without a limit of their own`, and `not affected by this row (own limits):
    user alice, bob, carol and 11 more`.
    """
    partly = _format_names("user", found.partly, found.partly_own) if found.partly_own else ""
    classes = [
        _format_class(client_class, entity, key, undeclared, partly)
        for client_class in found.classes
    ]
    return [*classes, *_list_others(found)] if classes else [NO_EFFECT]


def _format_class(
    client_class: ClassEffect, entity: str, key: str, undeclared: Collection[str], partly: str
) -> str:
    """Return what happens to a class; `partly` are users who have no limit without a client id."""
    change = client_class.change(key)
    is_address = entity.startswith(f"{IP}=")
    who = _format_address(client_class) if is_address else _format_clients(client_class)
    is_anyone = client_class.user is None and client_class.client_id is None
    if partly and is_anyone and not client_class.sends_client_id:
        is_said = client_class.sends_client_id is False
        who += f" and of {partly}" if is_said else f", and {_SENDS[False]}, of {partly}"
    limits = _format_limits(client_class, change, entity, key)
    is_left = client_class.after is not None and client_class.after.entity in undeclared
    return f"{change}: {who}{limits}{', which Git does not declare' if is_left else ''}"


def _format_address(client_class: ClassEffect) -> str:
    address = client_class.address
    return cells.WITHOUT_OWN[IP] if address is None else f"IP address {_name(address)}"


def _format_clients(client_class: ClassEffect) -> str:
    user, sends = client_class.user, client_class.sends_client_id
    who = cells.WITHOUT_OWN[USER] if user is None else f"user {_name(user)}"
    if client_class.client_id is None:
        return who if sends is None else f"{_SENDS[sends]}, of {who}"
    if client_class.client_ids == 1:
        return f"client id {_name(client_class.client_id)} of {who}"
    names = (client_class.client_id, *client_class.more)
    return f"{_format_names('client id', names, client_class.client_ids)} of {who}"


def _format_names(noun: str, some: Sequence[str], number: int) -> str:
    """Return the first of a number of clients by name: `users alice, bob, carol and 11 more`."""
    if not some:
        return counted(number, noun)
    names = ", ".join(shortened(_name(name), _LONGEST_NAME) for name in some)
    more = f" and {number - len(some):,} more" if number > len(some) else ""
    return f"{plural(number, noun)} {names}{more}"


def _name(part: str) -> str:
    return part.partition("=")[2]


def _format_limits(client_class: ClassEffect, change: LimitChange, entity: str, key: str) -> str:
    """Return the limits; empty if they are the row's own values, which stand beside it."""
    if change is LimitChange.SAME:
        return f", at {_format_limit(client_class.after or client_class.before, entity, key, {})}"
    if all(limit.entity == entity for limit in (client_class.before, client_class.after) if limit):
        return ""
    shared = (
        _list_sharing(client_class)
        if client_class.is_shared_differently() and change not in _CLEAR
        else {}
    )
    before, after = (
        limit and _format_limit(limit, entity, key, shared)
        for limit in (client_class.before, client_class.after)
    )
    up_to = "up to " if change is LimitChange.MAY_GET_LESS else ""
    words = [f"from {up_to}{before}"] if before else []
    words += [f"to {after}"] if after else []
    return f", {' '.join(words)}"


def _list_sharing(client_class: ClassEffect) -> Sharing:
    if client_class.user is None or client_class.client_ids != 1:
        return cells.SHARED
    return {**cells.SHARED, (CLIENT_ID, USER): "for this client id alone"}


def _format_limit(limit: Limit | None, entity: str, key: str, shared: Sharing) -> str:
    value = format_limit(key, limit and limit.value)
    if limit is None:
        return value
    words = f"{value} {shared[limit.types]}" if shared else value
    return words if limit.entity == entity else f"{words} ({limit.entity})"


def _list_others(found: Effect) -> Iterator[str]:
    """Yield whom the change does not concern, and how many client ids were not examined."""
    counts = (
        (found.own_users, USER, "user"),
        (found.own_client_ids, CLIENT_ID, "client id"),
        (found.own_addresses, IP, "address"),
    )
    others = [
        _format_names(noun, [name for name in found.own if name.startswith(f"{kind}=")], number)
        for number, kind, noun in counts
        if number
    ]
    if others:
        yield f"not affected by this row (own limits): {', '.join(others)}"
    if found.between:
        yield f"limits between these: {counted(found.between, 'more client id')}"


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
        *((line(), Table.of(_HEADINGS, map(_list_cells, rows))) if rows else ()),
        *more_line(left_out, "more; --format json has them all"),
        *((line(), _owner_table(effects)) if total.keys else ()),
        line(),
        line(describe_inventory(effects), inventory_tone(effects)),
    )


_HEADINGS = ("verdict", "user", "client id", "key", "current", "desired", "use", "owner")


def _list_cells(row: ClientEffectRow) -> Cells:
    tone = _TONES.get(LimitChange(row.verdict), Tone.PLAIN)
    before = _format_side(row.key, row.before, row.before_level, row.before_entity)
    after = _format_side(row.key, row.after, row.after_level, row.after_entity)
    of = (row.user, row.client_id, row.key, before, after, _format_use(row), row.owner or "")
    return (Span(row.verdict, tone), *of)


def _format_side(key: str, value: float | None, level: str | None, entity: str | None) -> str:
    limit = UNLIMITED if value is None else format_limit(key, value)
    return limit if entity is None else f"{limit} of {entity} ({level})"


def _format_use(row: ClientEffectRow) -> str:
    """Return what the clients that share the limit use, and how much they may use more."""
    if row.used is None or row.head_room is None:
        return "" if row.observed is None else format_rate(row.key, row.observed)
    used = format_rate(row.key, row.used)
    if row.throttled:
        return f"{used}: would be throttled"
    return f"{used}, {format_rate(row.key, row.head_room)} left"


def _owner_table(effects: InventoryEffects) -> Table:
    headings = ("owner", "clients", *_VERDICTS, "would be throttled")
    return Table.of(headings, (_list_numbers(owner) for owner in effects.owners if owner.keys))


def _list_numbers(owner: OwnerEffects) -> tuple[str, ...]:
    numbers = (owner.clients, *_count_by_verdict(owner), owner.throttled)
    return owner.owner or "no owner", *(f"{number:,}" for number in numbers)
