"""The limits of a client: KIP-546's text, the table of all levels, and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from quota_ops.model.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quota import UNLIMITED, format_limit, json_number
from quota_ops.model.rows import Key, StoredQuota
from quota_ops.model.text import counted
from quota_ops.precedence.resolution import CLIENT_KEYS, Resolution, Rung
from quota_ops.report.formats import escape_text
from quota_ops.report.layout import Line, Row, Screen, Span, Table, Tone, line

WHO_SHARES = {
    1: "{user}'s connections with client id {client}",
    2: "{user}'s connections with client id {client} (a separate limit for each client id)",
    3: "all of {user}'s clients that have no pair of their own for this key",
    4: "{user}'s connections with client id {client} (a separate limit for each user)",
    5: "{user}'s connections with client id {client} (a separate limit for each such pair)",
    6: "all of {user}'s clients that no pair limits for this key (a separate limit for each user)",
    7: "all connections with client id {client} that nothing limits by user for this key",
    8: "all connections with client id {client} that nothing limits by user for this key "
    "(a separate limit for each client id)",
}
"""The connections that are counted together, by rank."""


def resolution_screen(
    resolutions: Sequence[Resolution],
    brokers: int | None,
    *,
    callback: str,
    explained_on: str | None,
    sources: Mapping[Key, str] | None = None,
) -> Screen:
    """Return the limits of a client, then what makes them uncertain.

    `sources` describe the source of the limits that apply.

    With `explained_on`, the name of the cluster, shows all levels. `callback` is the warning about
    a quota callback class, or empty.
    """
    blocks: list[Line | Table] = []
    if explained_on is None:
        blocks += as_text(resolutions, brokers, sources or {})
    else:
        for number, one in enumerate(resolutions):
            blocks += [*([line()] if number else []), *as_ladder(one, explained_on, brokers)]
            blocks += [line(words) for words in _list_sources(one, sources or {})]
    if callback and any(one.key in CLIENT_KEYS for one in resolutions):
        blocks.append(line(callback, Tone.CHANGE))
    return tuple(blocks)


def clients_screen(rows: Sequence[Sequence[Any]]) -> Screen:
    """Return a row for each client and key of the table RESOLVED."""
    return (Table(("user", "client id", "key", "limit", "set by"), tuple(map(_client_row, rows))),)


def _client_row(row: Sequence[Any]) -> Row:
    user, client_id, key, value, level, _, entity, *_shared = row
    limit = UNLIMITED if value is None else format_limit(key, value)
    cells = (user, client_id, key, limit, f"{entity} ({level})" if entity else "none")
    return Row(tuple(map(Span, cells)))


def _list_sources(one: Resolution, sources: Mapping[Key, str]) -> Iterator[str]:
    """Yield where the limit that applies comes from, if that is known."""
    if one.applied and (words := sources.get(Key(one.applied.entity.text, one.key))):
        yield escape_text(f"Source: {words}.")


def as_text(
    resolutions: Sequence[Resolution], brokers: int | None, sources: Mapping[Key, str]
) -> Screen:
    """Return KIP-546's text: the client, then for each key its limit, what it overrides and means.

    `brokers` is the number of brokers; None if only a snapshot was read.
    """
    lines: list[Line] = []
    for number, one in enumerate(resolutions):
        if number == 0 or one.names != resolutions[number - 1].names:
            lines.append(line(_client(one), Tone.STRONG))
        lines += _key_lines(one, brokers)
        lines += [line(f"    {words}", Tone.CONTEXT) for words in _list_sources(one, sources)]
    return lines


def _key_lines(one: Resolution, brokers: int | None) -> Iterator[Line]:
    if one.applied is None:
        yield (Span(f"  {one.key}={UNLIMITED}", Tone.OK),)
    else:
        value = one.applied.value
        yield (Span(f"  {one.key}={value!r}", Tone.STRONG), Span(f"  {_limit(one, one.applied)}"))
    for rung in one.overridden:
        word = "or" if rung in one.spellings else "overrides"
        yield line(f"    {word} {_limit(one, rung)}", Tone.CONTEXT)
    for text in notes(one, brokers):
        yield line(f"    {text}", Tone.CONTEXT)


def as_ladder(one: Resolution, cluster: str, brokers: int | None) -> Screen:
    """Return all levels in order, each with its limit; the one that applies is marked."""
    size = "" if brokers is None else f" ({counted(brokers, 'broker')})"
    rows = tuple(_ladder_row(one, rung) for rung in (*one.by_name, *one.rungs))
    return (
        line(f"{one.key} for {_client_words(one)} on {cluster}{size}", Tone.STRONG),
        Table(("",) * 5, rows),
        line(),
        *(line(text) for text in notes(one, brokers)),
    )


def _ladder_row(one: Resolution, rung: Rung) -> Row:
    rank = "" if rung.level.rank is None else str(rung.level.rank)
    value = "-" if rung.value is None else format_limit(one.key, rung.value)
    tone, remark = Tone.PLAIN, ""
    if rung in one.spellings:
        tone, remark = Tone.CHANGE, "one of these applies"
    elif rung is one.applied:
        tone, remark = Tone.STRONG, "<- applies"
    elif rung.value is None:
        tone = Tone.CONTEXT
    elif rung.escaped:
        tone, remark = Tone.CHANGE, "escaped: no client id"
    elif rung in one.by_name:
        tone, remark = Tone.CHANGE, "by name: see below"
    else:
        tone, remark = Tone.CONTEXT, "overridden"
    cells = (f"  {rank}", rung.level.words, _parts(rung.entity), value, remark)
    return Row(tuple(Span(text, tone) for text in cells))


def notes(one: Resolution, brokers: int | None) -> Iterator[str]:
    """Yield the effect of the limit on the cluster, the clients that share it, and other notes."""
    yield _meaning(one, brokers)
    for entity, _, value in one.foreign:
        yield (
            f"{format_limit(one.key, value)} is stored for {entity.text}, a type of entity that "
            "Apache Kafka does not have: brokers that have it may apply it to this client."
        )
    if one.escaped:
        yield (
            "A connection without a client id escapes every limit for client ids: "
            + "; ".join(_limit(one, rung) for rung in one.escaped)
            + "."
        )
    if one.spellings:
        yield (
            "Those are spellings of one address: each broker applies the one that was changed "
            "last, which cannot be read back. Clear all of them, then set one: after only one is "
            "cleared, brokers apply none."
        )
    for rung in one.by_name:
        yield (
            f"{_limit(one, rung)} is stored by a host name, which each broker resolves itself; if "
            f"it finds {one.names[IP]}, that is another spelling of the address."
        )
    if one.names.get(USER, "").startswith("User:"):
        yield f"Brokers compare only the name: use --user {one.names[USER].removeprefix('User:')}."


def _meaning(one: Resolution, brokers: int | None) -> str:
    if one.applied is None or one.applied.value is None:
        return "No entity type of Apache Kafka limits it." if one.foreign else "Nothing limits it."
    limit = format_limit(one.key, one.applied.value)
    if limit == UNLIMITED:
        return f"{{{_parts(one.applied.entity)}}} exempts it: nothing limits it."
    if one.spellings:
        limit = " or ".join(_value(one, rung) for rung in one.spellings)
    if one.applied.level.rank is None:
        return f"{limit} on each node, brokers and controllers alike, from {one.names[IP]}."
    names = {"user": one.names[USER], "client": one.names[CLIENT_ID]}
    who = WHO_SHARES[one.applied.level.rank].format(**names)
    if one.key == "controller_mutation_rate":
        return f"{limit} over the whole cluster, at its active controller, shared by {who}."
    of_what = " of one thread's time" if one.key == "request_percentage" else ""
    return f"{limit}{of_what} on each broker, shared by {who}; {_ceiling(one, brokers)}."


def _ceiling(one: Resolution, brokers: int | None) -> str:
    value = one.applied.value if one.applied else None
    if brokers is None or value is None or not isfinite(value):
        return "at most that times the number of brokers over the cluster"
    return f"at most {format_limit(one.key, value * brokers)} over the cluster"


def _value(one: Resolution, rung: Rung) -> str:
    return UNLIMITED if rung.value is None else format_limit(one.key, rung.value)


def _limit(one: Resolution, rung: Rung) -> str:
    rank = "" if rung.level.rank is None else f"level {rung.level.rank}, "
    return f"{_value(one, rung)} of {{{_parts(rung.entity)}}} ({rank}{rung.level.name})"


def _parts(entity: Entity) -> str:
    names = entity.as_dict()
    return ", ".join(Entity.of({kind: names[kind]}).text for kind in ENTITY_TYPES if kind in names)


def _client(one: Resolution) -> str:
    return f"{{{_parts(Entity.of(one.names))}}}"


def _client_words(one: Resolution) -> str:
    if IP in one.names:
        return f"address {one.names[IP]}"
    client = f"client {one.names[CLIENT_ID]}" if one.names[CLIENT_ID] else "no client id"
    return f"user {one.names[USER]}, {client}"


def as_json(resolutions: Sequence[Resolution], warning: str = "") -> dict[str, Any]:
    """Return by key: value, level, rank and entity of the limit, `overridden`, `shared_by`.

    `warning`, if not empty, is beside every key except those of addresses.
    An entity is a mapping of type to name, null for the default. A value that is no JSON number is
    a string; an empty name in `shared_by` is everyone. `by_name` has limits of host names, which
    may be those of the address; `foreign` has limits of entity types that Apache Kafka does not
    have, and that may apply. Both are omitted if empty.
    """
    return {
        one.key: _rung_json(one.applied)
        | {
            "overridden": [_rung_json(rung) for rung in one.overridden],
            "shared_by": dict(one.shared_by),
        }
        | ({"by_name": [_rung_json(rung) for rung in one.by_name]} if one.by_name else {})
        | ({"foreign": [_foreign_json(row) for row in one.foreign]} if one.foreign else {})
        | ({"warning": warning} if warning and one.key in CLIENT_KEYS else {})
        for one in resolutions
    }


def _foreign_json(row: StoredQuota) -> dict[str, Any]:
    return {"value": json_number(row.value), "entity": row.entity.as_dict()}


def _rung_json(rung: Rung | None) -> dict[str, Any]:
    if rung is None or rung.value is None:
        return {"value": None, "level": None, "rank": None, "entity": None}
    return {
        "value": json_number(rung.value),
        "level": rung.level.name,
        "rank": rung.level.rank,
        "entity": rung.entity.as_dict(),
    }


def foreign_words(stored: Sequence[StoredQuota]) -> str:
    """Return a warning about stored limits that a table of many clients omits, or "".

    Their entity types are unknown to Apache Kafka, so a broker that knows them may apply them.
    """
    client_limits = (one for one in stored if one.key in CLIENT_KEYS)
    foreign = {one.entity.text for one in client_limits if set(one.entity.types) - {*ENTITY_TYPES}}
    if not foreign:
        return ""
    more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
    return (
        f"The table leaves out the limits of {min(foreign)}{more}, because Apache Kafka does not "
        "have that type of entity. A broker that has it may apply them to clients of the table."
    )
