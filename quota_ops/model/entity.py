"""A client quota entity: who a quota is for, and its one text form.

Kafka's own ClientQuotaEntity is a map of type to name, where a null name is the
default of that type. Two spellings of one map are one entity, so the parts are put in
order once, when the entity is made.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from quota_ops.model.text import is_visible

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
MAX_NAME_BYTES = 32_767
"""The longest name that the protocol carries: a STRING is an int16 length and its bytes."""

DEFAULT_TEXT = "<default>"
_PLAIN = re.compile(r'[^\s,=<>"\\]+')
_PLAIN_ASCII = re.compile(r"[!#-+\-./0-;?-\[\]-~]+")
"""Nearly every name matches this and needs no second check."""
_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))*"'
_PART = re.compile(rf'(?P<type>{_STRING}|[^="]+)=(?P<name>{_STRING}|[^,"]+)(?:,|$)')


class Entity(NamedTuple):
    """A set of (type, name) parts in order of type; a name of None is the default."""

    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[str, str | None]) -> "Entity":
        """Make the entity that a type-to-name mapping describes."""
        return cls(tuple(sorted(names.items())))  # no two have one type, so no name is compared

    @classmethod
    def parse(cls, text: str) -> "Entity":
        """Read back what `text` wrote; ValueError when it is nothing that `text` writes."""
        entity = cls.of(dict(_parts(text)))
        if entity.text != text:
            raise ValueError(f"not an entity text: {text!r}")
        return entity

    @property
    def text(self) -> str:
        """The entity as one line: `client-id=<default>,user=alice`.

        A name that holds anything but plain characters that are seen is written as a JSON
        string, so the text is one harmless line and reads back to the same entity.
        """
        return text_of(self.parts)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the parts, in order."""
        return tuple([kind for kind, _ in self.parts])

    @property
    def has_default(self) -> bool:
        """Whether a part is the default of its type, so that many clients share the entity."""
        return any(name is None for _, name in self.parts)

    @property
    def user_first(self) -> tuple[tuple[str, str | None], ...]:
        """The parts in the order in which people say them: the user before all others."""
        return tuple(sorted(self.parts, key=lambda part: part[0] != USER))

    def as_dict(self) -> dict[str, str | None]:
        """The parts as a mapping of type to name."""
        return dict(self.parts)

    def __str__(self) -> str:
        return self.text


def text_of(parts: tuple[tuple[str, str | None], ...]) -> str:
    """The text of the entity of these parts, which are in order of type."""
    return ",".join(
        [
            f"{_quoted(kind)}={DEFAULT_TEXT if name is None else _quoted(name)}"
            for kind, name in parts
        ]
    )


def _quoted(name: str) -> str:
    if _PLAIN_ASCII.fullmatch(name):
        return name
    if _PLAIN.fullmatch(name) and is_visible(name):
        return name
    quoted = json.dumps(name, ensure_ascii=False)
    return "".join(
        char if is_visible(char) else json.dumps(char, ensure_ascii=True)[1:-1] for char in quoted
    )


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    at = 0
    while part := _PART.match(text, at):
        name = part["name"]
        yield _unquoted(part["type"]), None if name == DEFAULT_TEXT else _unquoted(name)
        at = part.end()


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text
