"""The limits of a client: KIP-546's text, the table of all levels, and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from quota_ops.model.quotas.entity import CLIENT_ID, ENTITY_TYPES, IP, USER, Entity
from quota_ops.model.quotas.quota import (
    CLIENT_KEYS,
    QUOTA_KEYS,
    THREAD_KEY,
    UNLIMITED,
    find_applied,
    format_limit,
    json_number,
    limits_a_client,
    multiply_limit,
)
from quota_ops.model.quotas.rows import Key
from quota_ops.model.text import counted
from quota_ops.precedence.resolution import Resolution, Rung
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import Cells, Line, Screen, Span, Table, Tone, line

WHO_SHARES = {
    1: "{user}'s connections with client id {client}",
    2: "{user}'s connections with client id {client} (a separate limit for each client id)",
    3: "all of {user}'s clients without a quota of their client id that comes first",
    4: "{user}'s connections with client id {client} (a separate limit for each user)",
    5: "{user}'s connections with client id {client} (a separate limit for each such pair)",
    6: "all of {user}'s clients without a quota of their client id that comes first (a separate "
    "limit for each user)",
    7: "all connections with client id {client} that have no limit by user for this key",
    8: "all connections with client id {client} that have no limit by user for this key "
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
        for number, resolution in enumerate(resolutions):
            blocks += [*([line()] if number else []), *as_ladder(resolution, explained_on, brokers)]
            blocks += [line(words) for words in _list_sources(resolution, sources or {})]
    if callback and any(resolution.key in CLIENT_KEYS for resolution in resolutions):
        blocks.append(line(callback, Tone.CHANGE))
    return tuple(blocks)


def _list_sources(resolution: Resolution, sources: Mapping[Key, str]) -> Iterator[str]:
    """Yield where the limit that applies comes from, if that is known."""
    if resolution.applied and (
        words := sources.get(Key(resolution.applied.entity.text, resolution.key))
    ):
        yield escape_text(f"Source: {words}.")


def as_text(
    resolutions: Sequence[Resolution], brokers: int | None, sources: Mapping[Key, str]
) -> Screen:
    """Return KIP-546's text: the client, then for each key its limit, what it overrides and means.

    `brokers` is the number of brokers; None if only a snapshot was read.
    """
    lines: list[Line] = []
    for number, resolution in enumerate(resolutions):
        if number == 0 or resolution.names != resolutions[number - 1].names:
            lines.append(line(_client(resolution), Tone.STRONG))
        lines += _key_lines(resolution, brokers)
        lines += [
            line(f"    {words}", Tone.CONTEXT) for words in _list_sources(resolution, sources)
        ]
    return lines


def _key_lines(resolution: Resolution, brokers: int | None) -> Iterator[Line]:
    if resolution.applied is None:
        yield (Span(f"  {resolution.key}={UNLIMITED}", Tone.OK),)
    else:
        value = resolution.applied.value
        yield (
            Span(f"  {resolution.key}={value!r}", Tone.STRONG),
            Span(f"  {_limit(resolution, resolution.applied)}"),
        )
    for rung in resolution.overridden:
        word = "or" if rung in resolution.spellings else "overrides"
        yield line(f"    {word} {_limit(resolution, rung)}", Tone.CONTEXT)
    for text in notes(resolution, brokers):
        yield line(f"    {text}", Tone.CONTEXT)


def as_ladder(resolution: Resolution, cluster: str, brokers: int | None) -> Screen:
    """Return all levels in order, each with its limit; the one that applies is marked."""
    size = "" if brokers is None else f" ({counted(brokers, 'broker')})"
    rows = (_ladder_row(resolution, rung) for rung in (*resolution.by_name, *resolution.rungs))
    return (
        line(
            f"{resolution.key} for {_describe_client(resolution)} on {cluster}{size}", Tone.STRONG
        ),
        Table.of(("",) * 5, rows),
        line(),
        *(line(text) for text in notes(resolution, brokers)),
    )


def _ladder_row(resolution: Resolution, rung: Rung) -> Cells:
    rank = "" if rung.level.rank is None else str(rung.level.rank)
    value = "-" if rung.value is None else format_limit(resolution.key, rung.value)
    tone, remark = Tone.PLAIN, ""
    if rung in resolution.spellings:
        tone, remark = Tone.CHANGE, "one of these applies"
    elif rung is resolution.applied:
        tone, remark = Tone.STRONG, "<- applies"
    elif rung.value is None:
        tone = Tone.CONTEXT
    elif rung.escaped:
        tone, remark = Tone.CHANGE, "escaped: no client id"
    elif rung in resolution.by_name:
        tone, remark = Tone.CHANGE, "by name: see below"
    else:
        tone, remark = Tone.CONTEXT, "overridden"
    cells = (f"  {rank}", rung.level.words, _parts(rung.entity), value, remark)
    return (Span(text, tone) for text in cells)


def notes(resolution: Resolution, brokers: int | None) -> Iterator[str]:
    """Yield the effect of the limit on the cluster, the clients that share it, and other notes."""
    yield _meaning(resolution, brokers)
    for entity, _, value in resolution.foreign:
        yield (
            f"{format_limit(resolution.key, value)} is stored for {entity.text}, a type of entity "
            "that Apache Kafka does not have: brokers that have it may apply it to this client."
        )
    if resolution.escaped:
        yield (
            "A connection without a client id escapes every limit for client ids: "
            + "; ".join(_limit(resolution, rung) for rung in resolution.escaped)
            + "."
        )
    if resolution.spellings:
        yield (
            "Those are spellings of one address: each broker applies the one that was changed "
            "last, which cannot be read back. Clear all of them, then set one: after only one is "
            "cleared, brokers apply none."
        )
    for rung in resolution.by_name:
        yield (
            f"{_limit(resolution, rung)} is stored by a host name, which each broker resolves "
            f"itself; if it finds {resolution.names[IP]}, that is another spelling of the address."
        )
    if resolution.names.get(USER, "").startswith("User:"):
        name = resolution.names[USER].removeprefix("User:")
        yield f"Brokers compare only the name: use --user {name}."


def _meaning(resolution: Resolution, brokers: int | None) -> str:
    if resolution.applied is None or resolution.applied.value is None:
        return (
            "No entity type of Apache Kafka limits it."
            if resolution.foreign
            else "Nothing limits it."
        )
    limit = format_limit(resolution.key, resolution.applied.value)
    if not limits_a_client(resolution.key, resolution.applied.value):
        return f"{{{_parts(resolution.applied.entity)}}} exempts it: nothing limits it."
    if resolution.spellings:
        limit = " or ".join(_value(resolution, rung) for rung in resolution.spellings)
    if resolution.applied.level.rank is None:
        if find_applied(resolution.key, resolution.applied.value) == 0:
            return f"{limit} is 0 to brokers: no node accepts a connection from this address."
        return f"{limit} on each node, brokers and controllers alike, from {resolution.names[IP]}."
    names = {"user": resolution.names[USER], "client": resolution.names[CLIENT_ID]}
    who = WHO_SHARES[resolution.applied.level.rank].format(**names)
    if QUOTA_KEYS[resolution.key].by_controller:
        return f"{limit} over the whole cluster, at its active controller, shared by {who}."
    of_what = " of one thread's time" if resolution.key == THREAD_KEY else ""
    return f"{limit}{of_what} on each broker, shared by {who}; {_ceiling(resolution, brokers)}."


def _ceiling(resolution: Resolution, brokers: int | None) -> str:
    value = resolution.applied.value if resolution.applied else None
    if brokers is None or value is None:
        return "at most that times the number of brokers over the cluster"
    return (
        f"at most {format_limit(resolution.key, multiply_limit(value, brokers))} over the cluster"
    )


def _value(resolution: Resolution, rung: Rung) -> str:
    return UNLIMITED if rung.value is None else format_limit(resolution.key, rung.value)


def _limit(resolution: Resolution, rung: Rung) -> str:
    rank = "" if rung.level.rank is None else f"level {rung.level.rank}, "
    return f"{_value(resolution, rung)} of {{{_parts(rung.entity)}}} ({rank}{rung.level.name})"


def _parts(entity: Entity) -> str:
    names = entity.as_dict()
    return ", ".join(Entity.of({kind: names[kind]}).text for kind in ENTITY_TYPES if kind in names)


def _client(resolution: Resolution) -> str:
    return f"{{{_parts(Entity.of(resolution.names))}}}"


def _describe_client(resolution: Resolution) -> str:
    if IP in resolution.names:
        return f"address {resolution.names[IP]}"
    client = (
        f"client {resolution.names[CLIENT_ID]}" if resolution.names[CLIENT_ID] else "no client id"
    )
    return f"user {resolution.names[USER]}, {client}"


def as_json(
    resolutions: Sequence[Resolution], warning: str, lost: Mapping[Key, str]
) -> dict[str, Any]:
    """Return by key: value, level, rank and entity of the limit, `overridden`, `shared_by`.

    `warning`, if not empty, is beside every key except those of addresses.
    An entity is a mapping of type to name, null for the default. A value that is no JSON number is
    a string; an empty name in `shared_by` is everyone. `by_name` has limits of host names, which
    may be those of the address; `foreign` has limits of entity types that Apache Kafka does not
    have, and that may apply. `lost` is why the limit is not in force although it is stored. All
    three are omitted if empty.
    """
    return {
        resolution.key: {
            **_rung_json(resolution.applied),
            "overridden": [_rung_json(rung) for rung in resolution.overridden],
            "shared_by": dict(resolution.shared_by),
            **_list_doubts(resolution, warning, lost),
        }
        for resolution in resolutions
    }


def _list_doubts(resolution: Resolution, warning: str, lost: Mapping[Key, str]) -> dict[str, Any]:
    """Return what makes a limit uncertain, by name."""
    key, applied = resolution.key, resolution.applied
    doubts = {
        "by_name": [_rung_json(rung) for rung in resolution.by_name],
        "foreign": [
            {"value": json_number(row.value), "entity": row.entity.as_dict()}
            for row in resolution.foreign
        ],
        "lost": applied and lost.get(Key(applied.entity.text, key)),
        "warning": warning if key in CLIENT_KEYS else "",
    }
    return {name: doubt for name, doubt in doubts.items() if doubt}


def _rung_json(rung: Rung | None) -> dict[str, Any]:
    if rung is None or rung.value is None:
        return {"value": None, "level": None, "rank": None, "entity": None}
    return {
        "value": json_number(rung.value),
        "level": rung.level.name,
        "rank": rung.level.rank,
        "entity": rung.entity.as_dict(),
    }
