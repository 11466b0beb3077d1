r"""Parses a `sasl.jaas.config`, the credentials of Kafka's Java clients.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";

Source: Kafka's JaasConfig and the java.io.StreamTokenizer that it uses. Quotes are double or
single, and within them a backslash escapes: \n \t \b \r \f \v \a, up to three octal digits, or the
character itself. Error messages show only names: any other text may be a secret.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from quota_ops.model.errors import InvalidInput

_TOKEN = re.compile(
    r"""(?:\s|//[^\r\n]*|/\*.*?\*/)*
    (?:(?P<word>[A-Za-z_$\xa0-\xff][-A-Za-z0-9_$.\xa0-\xff]*)
      |"(?P<double>(?:[^"\\\r\n]|\\.)*)"
      |'(?P<single>(?:[^'\\\r\n]|\\.)*)'
      |(?P<sign>[=;])
      |(?P<end>\Z)
      |(?P<other>.))""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<char>.))", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_FLAGS = {"required", "requisite", "sufficient", "optional"}


class LoginModule(NamedTuple):
    """A login module: its class without the package, and its options by name."""

    name: str
    options: dict[str, str]


class _Token(NamedTuple):
    kind: str
    text: str


_SEMICOLON, _EQUALS, _END = _Token("sign", ";"), _Token("sign", "="), _Token("end", "")


def parse_jaas(text: str, place: str) -> LoginModule:
    """Parse the one login module of a `sasl.jaas.config`. Raises InvalidInput with the reason."""
    tokens = [*_tokens(text), _END, _END, _END]
    module, flag, *rest = tokens
    if module.kind != "text" or flag.kind != "text" or flag.text.lower() not in _FLAGS:
        _refuse(place, "must begin with the class of a login module and `required`")
    options: dict[str, str] = {}
    while rest[0] not in (_SEMICOLON, _END):
        name, equals, value, *rest = rest
        if name.kind != "text" or equals != _EQUALS:
            _refuse(place, 'needs options as name="value", and `;` after the last')
        if value.kind != "text":
            _refuse(place, f"has no value for {name.text}; quote a value with special characters")
        if name.text in options:
            _refuse(place, f"sets {name.text} twice")
        options[name.text] = value.text
    if rest[:2] != [_SEMICOLON, _END]:
        _refuse(place, "must name only one login module, with `;` after its last option")
    return LoginModule(module.text.rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "word":
            yield _Token("text", match["word"])
        elif kind in {"double", "single"}:
            yield _Token("text", _ESCAPE.sub(_unescape, match[kind]))
        else:
            yield _Token(kind, match[kind])


def _unescape(escape: re.Match[str]) -> str:
    if escape["octal"]:
        return chr(int(escape["octal"], 8))
    return _CONTROL.get(escape["char"], escape["char"])


def _refuse(place: str, what: str) -> NoReturn:
    raise InvalidInput(f"{place}: sasl.jaas.config {what}.")
