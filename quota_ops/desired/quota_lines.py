"""A plainly written quotas file, read line by line: nearly every file of a large cluster is one.

What is not plain, and every problem, is read by `quotas_file` from PyYAML's nodes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from quota_ops.desired.names import require_canonical
from quota_ops.desired.quotas_file import Limit, Quota, QuotasFile
from quota_ops.desired.yaml.nodes import SizeBudget
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.desired.yaml.values import LONGEST_NOTE, is_text
from quota_ops.model.quotas.entity import ENTITY_TYPES, IP, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, parse_limit

_LINE = re.compile(r"( *)(- )?([a-z_-]+):(?: ([^# ](?:[^#]*[^# ])?))? *(?: #.*)?")
"""The indentation, the dash of an entry, the name and the value of a field."""
_BLANK = re.compile(r" *(?:#.*)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,200}")
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_NOTE = re.compile(r"[A-Za-z][^\t:]*")
_DEFAULT = "{default: true}"
_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,9})?(?: ?[A-Za-z%/]{1,9})?|unlimited"
_LIMIT = re.compile(rf"([a-z_]+): ({_NUMBER})")
_LIMITS = re.compile(rf"\{{ ?[a-z_]+: (?:{_NUMBER})(?:, [a-z_]+: (?:{_NUMBER}))* ?\}}")
_Field = tuple[str, str | None, str | None, Span]
"""The name of a field, the dash before it, its value and its place."""
_OF_FILE = 5
"""The YAML values of a file without its entries."""


class _Unread(ValueError):
    """The file is not plain, or has a problem."""


class _Entry(Struct):
    """The fields of an entry that were read so far, with the places of names and limits."""

    names: dict[str, str | None] = {}
    places: dict[str, Span] = {}
    limits: dict[str, Limit] = {}
    has_limits: bool = False
    reason: str | None = None
    values: int = 1

    def add(self, name: str, value: str | None, place: Span) -> None:
        """Add a field. Raises ValueError unless it is plain and new."""
        self.values += 2
        if name == "limits" and not self.has_limits:
            self.has_limits = True
            if value is not None:
                self._add_limits(value, place)
        elif value is None:
            raise _Unread
        elif name == "reason" and self.reason is None:
            self.reason = _read_note(value)
        elif name in ENTITY_TYPES and name not in self.names:
            self.names[name], self.places[name] = self._read_name(name, value), place
        else:
            raise _Unread

    def _read_name(self, kind: str, value: str) -> str | None:
        if value == _DEFAULT:
            self.values += 2
            return None
        if kind == IP and _ADDRESS.fullmatch(value):
            require_canonical(value)
        elif kind == IP or not _NAME.fullmatch(value) or not is_text(value):
            raise _Unread
        return value

    def _add_limits(self, value: str, place: Span) -> None:
        if not _LIMITS.fullmatch(value):
            raise _Unread
        start = place.column + place.length + len(": ")
        for found in _LIMIT.finditer(value):
            span = Span(place.line, start + found.start(), len(found[1]))
            self.add_limit(found[1], found[2], span)

    def add_limit(self, name: str, value: str, place: Span) -> None:
        """Add a limit. Raises ValueError unless it is valid and new."""
        if name not in QUOTA_KEYS or name in self.limits:
            raise _Unread
        self.values += 2
        key = QUOTA_KEYS[name]
        self.limits[name] = Limit(key.name, parse_limit(key, value), value, place)


def read_quota_lines(source: Source, room: SizeBudget) -> QuotasFile | None:
    """Return what `read_quotas_file` reads, and take its values from the room.

    None, without a problem, if the file has to be read from its nodes.
    """
    if "\r" in source.text:
        return None
    values = _OF_FILE
    quotas = []
    try:
        fields = _list_fields(source.text.split("\n"))  # not kept, as `lines` would be
        owner, span = _read_head(fields)
        for entry in _read_entries(fields):
            values += entry.values
            quotas.append(_make_quota(source, owner, entry))
    except ValueError:  # of which Misread is one
        return None
    if values > room.values or not quotas:
        return None
    room.values -= values
    return QuotasFile(source, owner, span, tuple(quotas))


def _read_head(fields: Iterator[_Field]) -> tuple[str, Span]:
    """Return the owner and its place.

    Raises ValueError unless the file starts with it and a list of quotas.
    """
    owner, quotas = next(fields, None), next(fields, None)
    if owner is None or owner[:2] != ("owner", None) or owner[2] is None or owner[3].column:
        raise _Unread
    if quotas is None or quotas[:3] != ("quotas", None, None) or quotas[3].column:
        raise _Unread
    place = owner[3]
    start = place.length + len(": ")
    return _read_note(owner[2]), Span(place.line, start, len(owner[2]))


def _read_entries(fields: Iterable[_Field]) -> Iterator[_Entry]:
    """Yield the entries.

    Raises ValueError unless each field is plain, and indented as its entry.
    """
    entry = None
    outer, inner = 0, None  # the columns of fields, and of limits if each has its own line
    for name, dash, value, place in fields:
        column = place.column
        if dash:
            if entry is not None:
                yield entry
            outer, entry = outer or column, _Entry()
        if entry is None:
            raise _Unread
        if inner is not None and not dash and column > outer and inner in {0, column} and value:
            inner = column
            entry.add_limit(name, value, place)
            continue
        if column != outer:
            raise _Unread
        inner = 0 if name == "limits" and value is None else None
        entry.add(name, value, place)
    if entry is not None:
        yield entry


def _list_fields(lines: Sequence[str]) -> Iterator[_Field]:
    """Yield the fields. Raises ValueError unless each line is one, a comment or blank."""
    for number, line in enumerate(lines):
        if found := _LINE.fullmatch(line):
            indent, dash, name, value = found.groups()
            yield name, dash, value, Span(number, len(indent) + len(dash or ""), len(name))
        elif not _BLANK.fullmatch(line):
            raise _Unread


def _read_note(text: str) -> str:
    if not _NOTE.fullmatch(text) or not is_text(text) or len(text) > LONGEST_NOTE:
        raise _Unread
    return text


def _make_quota(source: Source, owner: str, entry: _Entry) -> Quota:
    """Return the quota of an entry. Raises ValueError if its fields do not fit together."""
    names = entry.names
    fits = all(QUOTA_KEYS[key].types.issuperset(names) for key in entry.limits)
    if not fits or not names or not entry.limits or (IP in names and len(names) > 1):
        raise _Unread
    span = entry.places[next(kind for kind in ENTITY_TYPES if kind in names)]
    limits = tuple(entry.limits.values())
    return Quota(
        source, owner=owner, span=span, entity=Entity.of(names), limits=limits, reason=entry.reason
    )
