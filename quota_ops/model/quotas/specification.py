"""Entity options as in KIP-546: --names, --defaults, --any and --strict."""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from shlex import quote

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import DEFAULT_TEXT, ENTITY_TYPES, IP, MAX_NAME_BYTES, Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.text import is_visible

_END = rf"(?=,(?:{'|'.join(ENTITY_TYPES)})=|\Z)"
_PARTS = re.compile(rf'(?:^|,)([^=",]+="(?:[^"\\]|\\.)*"{_END}|.*?{_END})', re.DOTALL)
_LIKE_A_TYPE = re.compile(r",([A-Za-z_-]+)=")


def parse_filter(
    names: Sequence[str],
    defaults: Sequence[str],
    anyone: Sequence[str],
    *,
    strict: bool,
    others: Collection[str] = (),
) -> EntityFilter:
    """Return the filter that the flags describe; each flag may be given several times.

    `others` are further types to accept, because a snapshot has them. Raises InvalidInput, with
    the broker's message, for a filter that a broker would reject.
    """
    parts = (
        *(
            FilterPart(kind, Match.DEFAULT if name is None else Match.EXACT, name)
            for kind, name in parse_names(names)
        ),
        *(FilterPart(kind, Match.DEFAULT) for kind in parse_types(defaults)),
        *(FilterPart(kind, Match.ANY) for kind in parse_types(anyone)),
    )
    _require_describable((part.type for part in parts), others)
    return EntityFilter(parts, strict)


def parse_exactly(
    names: Sequence[str], defaults: Sequence[str], anyone: Sequence[str]
) -> EntityFilter:
    """Return a filter for entities of exactly the types in the flags, like an entry of `protect`.

    So `user=alice` is the entity that `alter` would alter, and not a client of alice. Raises
    InvalidInput as `parse_filter`, if no entity is specified, and for an empty name, which brokers
    never store.
    """
    wanted = parse_filter(names, defaults, anyone, strict=True)
    if not wanted.parts:
        raise InvalidInput(
            "no entity is specified",
            "Add --names user=alice, --defaults user for the default, --any user for all users.",
        )
    for part in wanted.parts:
        if part.name == "":
            raise InvalidInput(
                f"--names {part.type}= is empty",
                f"Kafka stores no empty name. For the default, use --defaults {part.type}.",
            )
    return wanted


def parse_entity(names: Sequence[str], defaults: Sequence[str]) -> Entity:
    """Return the entity that the flags name; only the broker checks whether its types exist."""
    for text in defaults:
        require_text("--defaults", text)
    parts = [*parse_names(names), *((kind, None) for kind in parse_types(defaults))]
    if not parts:
        raise InvalidInput(
            "no entity is specified", "Add --names user=alice, or --defaults user for the default."
        )
    for kind in dict(parts):
        if [part for part, _ in parts].count(kind) > 1:
            raise InvalidInput(f"{kind} is specified twice; an entity has one name of each type")
    return Entity.of(dict(parts))


def parse_names(given: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """Return the types and names in `user=alice,client-id=app`; a name of None is the default.

    If the flag is given once, a comma starts another part if a type and `=` follow it; any other
    comma belongs to the name (`user=CN=alice,O=shop`). If the flag is given more than once, each
    text is one part, including its commas. As in `Entity.text`, `user=<default>` is the default,
    and a name that begins with a quote a JSON string: `user="a,client-id=b"` is one part.
    """
    texts = _PARTS.findall(given[0]) if len(given) == 1 else given
    if len(given) == 1:
        for text in texts:
            _refuse_misspelled_type(text)
    return tuple(map(_parse_name, texts))


def format_flags(entity: Entity) -> str:
    """Return the options that name this entity in a shell, for example `--names user=alice`."""
    return " ".join(
        f"--defaults {quote(kind)}"
        if name is None
        else f"--names {quote(_format_name(kind, name))}"
        for kind, name in entity.parts
    )


def _format_name(kind: str, name: str) -> str:
    """Return a part as people write it, or in JSON quotes if that would be parsed differently.

    A screen shows invisible characters as escapes, which only JSON reads as those characters.
    """
    plain = f"{kind}={name}"
    try:
        if is_visible(name) and parse_names([plain]) == ((kind, name),):
            return plain
    except InvalidInput:  # a part of the name looks like a misspelled type
        pass
    return Entity.of({kind: name}).text


def _parse_name(text: str) -> tuple[str, str | None]:
    require_text("--names", text)
    kind, equals, name = text.partition("=")
    if not equals:
        raise InvalidInput(
            f"--names {text!r} has no type", "Write TYPE=NAME, for example user=alice."
        )
    if name == DEFAULT_TEXT:
        return kind, None
    if name.startswith('"'):
        name = _read_quoted(text, kind, name)
    require_carried("--names", name)
    if kind == IP and "/" in name:
        raise InvalidInput(
            f"--names {kind}={name} is not an address",
            "Kafka limits single addresses and the default, not ranges. Pass one address.",
        )
    return kind, name


def _read_quoted(text: str, kind: str, name: str) -> str:
    try:
        read = str(json.loads(name))
    except ValueError:
        raise InvalidInput(
            f"--names {text!r}: a name that begins with a quote must be a JSON string",
            f"If the quote is a part of the name, write {quote(Entity.of({kind: name}).text)}.",
        ) from None
    require_text("--names", read)
    return read


def require_text(option: str, given: str) -> None:
    """Raise InvalidInput for bytes that are not UTF-8, which Python passes on as surrogates."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{option} {given!r} is not UTF-8",
            "Names in Kafka are UTF-8: use a terminal or a file with that encoding.",
        ) from None


def require_carried(option: str, name: str) -> None:
    """Raise InvalidInput for a name that is longer than the protocol allows."""
    if (size := len(name.encode())) > MAX_NAME_BYTES:
        raise InvalidInput(
            f"{option} {name[:40]!r}… is {size:,} bytes long",
            f"Use a shorter name: Kafka allows {MAX_NAME_BYTES:,} bytes.",
        )


def _refuse_misspelled_type(text: str) -> None:
    kind, _, name = text.partition("=")
    if name.startswith('"'):
        return
    for word in _LIKE_A_TYPE.findall(text):
        if close := get_close_matches(word.lower(), ENTITY_TYPES, n=1):
            raise InvalidInput(
                f"--names {text!r}: {word} is not an entity type",
                f"Did you mean {close[0]}=? If it is a part of the name, quote the name: "
                f"--names {quote(Entity.of({kind: name}).text)}.",
            )


def parse_types(given: Iterable[str]) -> tuple[str, ...]:
    """Return the types in `user,client-id`, given together or one by one."""
    return tuple(kind.strip() for text in given for kind in text.split(","))


def _require_describable(types: Iterable[str], others: Collection[str]) -> None:
    """Raise InvalidInput as brokers do, in their order and words: ClientQuotasImage.describe."""
    seen: set[str] = set()
    for kind in types:
        if not kind:
            raise InvalidInput("Invalid empty entity type. (INVALID_REQUEST)")
        if kind in seen:
            raise InvalidInput(
                f"Entity type {kind} cannot appear more than once in the filter. (INVALID_REQUEST)",
                f"Select one {kind}, and run the command again for another one.",
            )
        if kind not in ENTITY_TYPES and kind not in others:
            raise InvalidInput(
                f"Unsupported entity type {kind} (UNSUPPORTED_VERSION)",
                f"Kafka filters by {', '.join(ENTITY_TYPES)}; without a filter, "
                "all entities are described.",
            )
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise InvalidInput(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component. (INVALID_REQUEST)"
        )
