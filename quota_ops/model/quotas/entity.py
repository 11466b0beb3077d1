"""A client quota entity: the clients that a quota applies to, and its canonical text.

Kafka's ClientQuotaEntity is a map of type to name, where a null name is the default of
that type. The order of a map has no meaning, so the parts are sorted once, when the
entity is created.
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
"""The longest name in the protocol: a STRING is an int16 length followed by its bytes."""

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
        return cls(tuple(sorted(names.items())))  # types are unique, so names are never compared

    @classmethod
    def parse(cls, text: str) -> "Entity":
        """Parse the output of `text`. Raises ValueError for anything else."""
        entity = cls.of(dict(_parts(text)))
        if entity.text != text:
            raise ValueError(f"not an entity text: {text!r}")
        return entity

    @property
    def text(self) -> str:
        """The entity as one line: `client-id=<default>,user=alice`.

        A name with anything but plain, visible characters is written as a JSON string, so the
        text is one safe line, and `parse` returns the same entity.
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
        """The parts in the order in which people read them: the user first."""
        return tuple(sorted(self.parts, key=lambda part: part[0] != USER))

    def as_dict(self) -> dict[str, str | None]:
        """Return the parts as a mapping of type to name."""
        return dict(self.parts)

    def __str__(self) -> str:
        return self.text


def text_of(parts: tuple[tuple[str, str | None], ...]) -> str:
    """Return the text of the entity with these parts, which are sorted by type."""
    return ",".join(
        [
            f"{kind if kind in ENTITY_TYPES else _quoted(kind)}="
            f"{DEFAULT_TEXT if name is None else _quoted(name)}"
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
