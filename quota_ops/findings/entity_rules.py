"""Findings about a single entity or limit; their places are added elsewhere."""

import json
import re
from collections.abc import Iterator
from unicodedata import name as name_of
from unicodedata import normalize

from quota_ops.findings import codes
from quota_ops.model.finding import Finding
from quota_ops.model.quotas.entity import DEFAULT_TEXT, IP, USER, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, THREAD_KEY, format_limit
from quota_ops.model.text import is_visible

_TYPED = re.compile(r"(user|group):", re.IGNORECASE)
"""The type of a principal, which Kafka does not look up, as people and other systems write it."""
_STAR = "*"
_WORDS_FOR_ALL = ("default", "any", "all")
"""Names that probably mean the default, for which scope and protect have any."""
_QUOTED = re.compile(r"\{\s*default\s*:.*\}")
"""The default as a text: in quotes, YAML reads no mapping."""
_SPACED = re.compile(r"\s*([,;])\s+")
CURLY = "\u2018\u2019\u201a\u201c\u201d\u201e"
_STRAIGHT = "\"'"
_AROUND = f" {CURLY}{_STRAIGHT}"
_WORDS = re.compile(r"[^\W\d_]+")
_ALPHABETS = {"Latin", "Greek", "Cyrillic", "Armenian", "Cherokee", "Coptic"}
"""Alphabets with letters that look the same; Unicode's names of letters begin with them."""
_ESCAPED = "\a\b\t\n\v\f\r\x1b\x85\u2028\u2029"
_BACKSLASHES = str.maketrans(dict(zip(_ESCAPED, map("\\{}".format, "abtnvfreNLP"), strict=True)))
"""What `"CORP\\nina"` was meant to have where YAML reads a line break."""
_LISTED = re.compile(r"\s*[;|]\s*|\s*,\s+|\s+and\s+")
_PATTERNS = (_STAR, "?", "${")
_GROUP = re.compile(r"[\w.-]([\[{])[^\[{]+[\]}]")
"""A group of a pattern, as in `svc-[ab]` and `svc-{a,b}`."""
_USUAL = re.compile(rf"(?!(?:{'|'.join(_WORDS_FOR_ALL)})\Z)[A-Za-z0-9_.,/@=+-]+")
"""A name that no rule finds, as nearly all are."""


def check_names(entity: Entity) -> Iterator[Finding]:
    """Yield the findings about the names of an entity."""
    for kind, name in entity.parts:
        if name is None or (kind != IP and _USUAL.fullmatch(name)):
            continue
        found = _of_address(name, entity) if kind == IP else _of_client(kind, name, entity)
        for code, message, remedy in found:
            yield codes.make_finding(code, message, remedy, entity=entity.text)


def _of_client(kind: str, name: str, entity: Entity) -> Iterator[tuple[str, str, str]]:
    if kind == USER:
        yield from _of_principal(name, entity)
    yield from _of_name(kind, name, entity)
    yield from _of_letters(kind, name, entity)
    yield from _of_pattern(kind, name, entity)


def _of_principal(name: str, entity: Entity) -> Iterator[tuple[str, str, str]]:
    if (typed := _TYPED.match(name)) is None:
        return
    prefix, bare = typed[0], name.removeprefix(typed[0])
    message = f"{entity} never applies: Kafka looks up quotas by the name without {prefix}."
    if typed[1].casefold() == "group":
        message = f"{entity} never applies: Kafka's quotas have users, and no groups."
    remedy = f"If you mean {Entity.of({USER: bare})}, write that name." if bare else ""
    yield codes.PREFIXED_USER, message, remedy


def _of_address(name: str, entity: Entity) -> Iterator[tuple[str, str, str]]:
    if name.startswith("127.") or name == "::1":
        yield codes.LOOPBACK, f"{entity} limits only programs on the broker's own machine.", ""
    if name in {"0.0.0.0", "::"}:  # noqa: S104 - a name in a file
        yield codes.NOWHERE, f"{entity} applies to no connection: no client has this address.", ""


def _of_name(kind: str, name: str, entity: Entity) -> Iterator[tuple[str, str, str]]:
    is_quoted = _QUOTED.fullmatch(name)
    if is_quoted or name in {DEFAULT_TEXT, *_WORDS_FOR_ALL}:
        message = f"{entity} is for a {kind} with this name, not for the default."
        way = "Remove the quotes:" if is_quoted else "For the default, write"
        yield codes.DEFAULT_AS_TEXT, message, f"{way} {kind}: {{default: true}}."
    if (bare := name.strip(_AROUND)) != name:
        what = "curly quotes" if name.strip(f" {_STRAIGHT}") != bare else "quotes"
        what = "a space" if bare == name.strip(" ") else what
        message = f"{entity} has {what} around the name, which Kafka treats as part of it."
        so = f"Write {kind}: {json.dumps(bare, ensure_ascii=False)}."
        yield codes.AROUND_NAME, message, so if bare else ""
    if name == _STAR:
        message = f"{entity} is for a {kind} named *: Kafka's quotas have no patterns."
        every = f"For every {kind} without its own quota, write {kind}: {{default: true}}."
        yield codes.DEFAULT_AS_TEXT, message, every


def _of_letters(kind: str, name: str, entity: Entity) -> Iterator[tuple[str, str, str]]:
    """Yield a finding for each way in which a name is not the one that its reader sees."""
    written = f"{entity} is {json.dumps(name)}"
    if not name.isascii() and (plain := normalize("NFC", "".join(map(_plain, name)))) != name:
        usual = json.dumps(plain)
        message = f"{written}, which looks like {usual} but is another {kind} to Kafka."
        yield codes.NOT_NFC, message, f"Write {usual}, unless clients use the other form."
    for word in _WORDS.findall(name):
        alphabets = _ALPHABETS & {name_of(letter, "").partition(" ")[0].title() for letter in word}
        if len(alphabets) > 1:
            message = f"{written}, with {' and '.join(sorted(alphabets))} letters in a word."
            remedy = "Write each word in one alphabet, unless clients use this form."
            yield codes.NOT_NFC, message, remedy
            break
    if unseen := next((char for char in name if not is_visible(char)), None):
        what = f"the invisible character U+{ord(unseen):04X}"
        message = f"{entity} contains {what}, which Kafka treats as part of it."
        meant = name.translate(_BACKSLASHES)
        way = f"If you mean a backslash, write {kind}: {json.dumps(meant)}."
        yield codes.AROUND_NAME, message, way if is_visible(meant) else ""


def _plain(letter: str) -> str:
    """Return the ASCII letter or digit of which this is a form, such as a fullwidth one, or it."""
    plain = normalize("NFKC", letter)
    is_form = letter.isalnum() and (plain.isalpha() or letter.isdecimal())  # no ™, and no ²
    return plain if is_form and plain.isascii() else letter


def _of_pattern(kind: str, name: str, entity: Entity) -> Iterator[tuple[str, str, str]]:
    """Yield a finding for a pattern, a list of names, and a DN with a space after a comma."""
    if name == _STAR:
        return
    group = _GROUP.search(name)
    mark = next((mark for mark in _PATTERNS if mark in name), group and group[1])
    if mark is not None:
        message = f"{entity} is for a {kind} with a {mark} in its name: Kafka's quotas have no"
        yield codes.PATTERN, f"{message} patterns.", ""
    elif "=" not in name and _LISTED.search(name):
        message = f"{entity} is for one {kind} with this name, not for each name in it."
        yield codes.PATTERN, message, f"Write a list: {kind}: [{_LISTED.sub(', ', name)}]."
    elif _SPACED.search(name):
        bare = json.dumps(_SPACED.sub(r"\1", name), ensure_ascii=False)
        message = f"{entity} has a space after a comma; names from certificates have none."
        remedy = f"Write {kind}: {bare}, unless ssl.principal.mapping.rules adds the space."
        yield codes.PATTERN, message, remedy


def check_limit(
    entity: str, key: str, value: float, *, is_share: bool = False, since: str | None = None
) -> Iterator[Finding]:
    """Yield a finding if a limit is small for its key; `is_share` if nobody wrote this number.

    `since` is when the limit begins (ISO 8601); None if it applies now.
    """
    known = QUOTA_KEYS.get(key)
    if known is not None and value < known.starving:
        least = format_limit(key, known.starving)
        message = f"{key} of {entity} is {format_limit(key, value)}"
        message += f" from {since} on" if since else ""
        message += ", which all but stops a busy client."
        remedy = f"Did you forget a unit? Below {least}, clients mostly wait."
        if is_share:
            remedy = f"Raise what is divided. Below {least}, clients mostly wait."
        yield codes.make_finding(codes.STARVING, message, remedy, entity=entity, key=key)
    elif key == THREAD_KEY and value < 1:
        meant = format_limit(key, value * 100)
        message = f"{key} of {entity} is {format_limit(key, value)} of one thread."
        remedy = f"If you mean {meant}, write {key}: {meant.removesuffix(' %')}."
        if is_share:
            remedy = "A percentage is of one thread; brokers have several. Raise what is divided."
        yield codes.make_finding(codes.FRACTION, message, remedy, entity=entity, key=key)
