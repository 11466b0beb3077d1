"""Names of users and client ids in labels: percent-encoded by Kafka, and quoted by JMX.

Source: Sanitizer of Kafka (`sanitize` for users, `jmxSanitize` for all tags) and
javax.management.ObjectName.quote. A client id that would need no quotes is never quoted, so a
quoted label is never a client id that begins with a quote.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

_PLAIN = re.compile(r"[A-Za-z0-9_\-%. \t]*")
"""The values that JMX does not quote."""
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ESCAPED = re.compile(r'["*?\\\n]')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""The characters with a meaning in Go's regular expressions."""


def decode_user(label: str) -> str:
    """Return the user that a label names."""
    return unquote(_unquote(label))


def decode_client_id(label: str) -> str:
    """Return the client id that a label names."""
    return _unquote(label)


def _unquote(label: str) -> str:
    if not _QUOTED.fullmatch(label):
        return label
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], label[1:-1])


def encode_user(user: str) -> str:
    """Return the label of a user."""
    return quote(user, safe="").replace("~", "%7E")


def encode_client_id(client_id: str) -> str:
    """Return the label of a client id."""
    if _PLAIN.fullmatch(client_id):
        return client_id
    escaped = _ESCAPED.sub(lambda found: "\\n" if found[0] == "\n" else f"\\{found[0]}", client_id)
    return f'"{escaped}"'


def match_any(label: str, values: Iterable[str]) -> str:
    """Return the matcher of PromQL for a label with one of some values; "" is no label."""
    pattern = "|".join(_SPECIAL.sub(lambda found: f"\\{found[0]}", value) for value in values)
    return f"{label}=~{quote_text(pattern)}"


def quote_text(text: str) -> str:
    """Return a text as PromQL writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
