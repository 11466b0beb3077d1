"""YAML text as PyYAML nodes: scalars as written, with places; no alias or tag is resolved."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from quota_ops.desired.yaml.checkout import Folder
from quota_ops.desired.yaml.shapes import FIELD_NAMES
from quota_ops.desired.yaml.source import Problems, Source, Span, read_source
from quota_ops.desired.yaml.values import show

MAX_DEPTH = 20
"""Desired state needs five levels; PyYAML recurses, and deep nesting overflows the C stack."""

MAX_VALUES = 2_000_000
"""The most values in all files of a cluster. A quota with three limits has eleven."""

MAX_CHARACTERS = 64 * 2**20
"""The most characters in all files of a cluster, comments included."""

MOST_HIDDEN = 5
"""How many aliases and tags of a file are listed one by one."""


class _Flat:
    """A resolver that only counts nodes and their depth.

    It resolves no tags: a scalar is its text, whatever type YAML gives it.
    """

    depth = values = 0
    most = MAX_VALUES

    def descend_resolver(self, parent: yaml.Node | None, _index: Any) -> None:
        self.depth = depth = self.depth + 1
        self.values = values = self.values + 1
        if (depth > MAX_DEPTH or values > self.most) and parent is not None:
            problem = "too many values" if values > self.most else "nested too deep"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=parent.start_mark)

    def ascend_resolver(self) -> None:
        self.depth -= 1

    def resolve(self, _kind: Any, _value: Any, _implicit: Any) -> str:
        return ""


def flat(base: type) -> Any:
    """PyYAML's C or pure-Python base loader, reading flat."""
    return type("FlatLoader", (_Flat, base), {})


LOADER = flat(getattr(yaml, "CBaseLoader", yaml.BaseLoader))
"""The C loader is ten times as fast; PyYAML lacks it where it was built without libyaml."""

_QUOTE = ("Text without quotes cannot start with CHAR.", "Put it in quotes.")
_COLON = "YAML does not allow a colon here."
_ESCAPE = (
    "In double quotes, a backslash begins an escape, and YAML does not know this one.",
    "Write the backslash twice, or the text in single quotes.",
)
_COMPLAINTS = {
    "nested too deep": (f"This is nested more than {MAX_DEPTH} levels deep.", "Use fewer levels."),
    "too many values": (
        f"Up to here, the cluster's files contain more than {MAX_VALUES:,} values.",
        "Remove entries that you do not need.",
    ),
    "another document": (
        "A second YAML document starts here.",
        "Keep one document per file: move this one to its own file.",
    ),
    "undefined alias": _QUOTE,
    "alphabetic or numeric character": _QUOTE,
    "cannot start any token": _QUOTE,
    "unknown escape": _ESCAPE,
    "hexdecimal": _ESCAPE,
    "hexadecimal": _ESCAPE,
    "mapping values are not allowed": (
        _COLON,
        'Write each field on its own line, indented as the others, and quote text that has ": ".',
    ),
    "found unexpected ':'": (_COLON, "Add a space after it, or quote the text."),
    "unexpected end of stream": ("The quote that starts here is never closed.", "Close the quote."),
    "expected '-' indicator": (
        "This line is in a list, but begins no item.",
        'Indent it as far as the other fields of the item above, or begin an item with "- ".',
    ),
    "expected ',' or": ("A comma or a closing bracket is missing.", "Check the brackets."),
    "<document start>": (
        "The YAML document ends before this.",
        "Remove the line with ... or the bracket that ends it.",
    ),
    "duplicate anchor": ("An anchor with this name is defined above.", "Do not use anchors."),
}
"""The message and remedy of the most common YAML errors, by words of both loaders."""


@dataclass
class SizeBudget:
    """The room that the files of a cluster have left; negative if they contain too much."""

    values: int = MAX_VALUES
    characters: int = MAX_CHARACTERS

    @property
    def is_spent(self) -> bool:
        """Whether reading stops, which bounds time and memory."""
        return self.values < 0 or self.characters < 0


def read_bounded(folder: Folder, name: str, problems: Problems, room: SizeBudget) -> Source | None:
    """Read the text of a file; None, after adding a problem, if it is unreadable or too large."""
    source = read_source(folder, name, problems)
    if source is None:
        return None
    room.characters -= len(source.text)
    if room.characters < 0:
        size = MAX_CHARACTERS >> 20
        message = f"Up to here, the cluster's files contain more than {size} MiB of text."
        source.refuse_at(Span(0, 0), message, "Remove entries that you do not need.")
        return None
    return source


def compose(source: Source, room: SizeBudget | None = None) -> yaml.Node | None:
    """Compose the one document of a file; None, after adding problems, if that fails."""
    room = room or SizeBudget()
    loader = LOADER(source.text)
    loader.most = room.values
    try:
        root: yaml.Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(source, error)
        return None
    finally:
        room.values -= loader.values
        loader.dispose()
    if root is None:
        source.refuse_at(Span(0, 0), "The file is empty.", "Add its fields, or remove the file.")
        return None
    return None if _refuse_hidden(source) else root


def _refuse_syntax(source: Source, error: yaml.MarkedYAMLError) -> None:
    complaint = ", ".join(filter(None, (error.problem, error.context)))
    mark: Any = error.problem_mark
    before = source.text[: mark.index].splitlines()
    end = len(source.text.rstrip())
    if error.context_mark is not None and (mark.index >= end or "scanning an alias" in complaint):
        mark = error.context_mark  # the start of the construct is more useful than the end
    char = source.text[mark.index : mark.index + 1]
    if char == "\t":
        message, remedy = "YAML does not allow a tab here.", "Indent with spaces."
    elif char == ":" and "node content" in complaint:
        message, remedy = _QUOTE
    else:
        message, remedy = next(
            (texts for words, texts in _COMPLAINTS.items() if words in complaint),
            (
                f"This is not valid YAML: {complaint}.",
                "Check the quotes, brackets and indentation here and on the line before.",
            ),
        )
    line = min(mark.line, len(source.lines) - 1)
    column = mark.column if line == mark.line else len(source.lines[line])
    span = Span(line, column)
    for pattern, missing, dash in _SLIPS if message == _COLON else ():
        if slip := _match_last(pattern, source.lines[:line]):
            at, found = slip
            span = Span(at, found.start("at"), len(found["at"]))
            message = f"{missing} is missing after this."
            right = ": ".join(found.group("name", "value"))
            remedy = f"Add it: {dash}{show(right)}"
    if "parsing a flow" in complaint and (hiding := _match_last(_HIDING, before)):
        at, found = hiding
        shown = found.string[: found.start("at")]
        if sum(map(shown.count, "[{")) > sum(map(shown.count, "]}")):
            span = Span(at, found.start("at"))
            message = "Here begins a comment, and the brackets in it close nothing."
            remedy = "Move the comment behind the last bracket, or to a line of its own."
    source.refuse_at(span, message.replace("CHAR", char), remedy)


_NAME = f"(?P<name>{'|'.join(FIELD_NAMES)})"
_SLIPS = (
    (re.compile(r"\s*(?:- +)?(?P<name>[a-z_-]+)(?P<at>:)(?P<value>[^\s:/].*)"), "A space", ""),
    (re.compile(rf"\s*(?:- +)?(?P<at>{_NAME}) +(?P<value>[^\s:#].*)"), "A colon", ""),
    (re.compile(rf"\s*(?P<at>-){_NAME}: *(?P<value>.*)"), "A space", "- "),
)
"""What is missing on the line before the one that YAML complains about."""
_HIDING = re.compile(r"[^#\"']*\s(?P<at>#).*[\]}]")


def _match_last(pattern: re.Pattern[str], lines: Sequence[str]) -> tuple[int, re.Match[str]] | None:
    """Match the last line that is not blank; return its number from 0, too."""
    last = max((at for at, line in enumerate(lines) if line.strip()), default=None)
    found = None if last is None else pattern.match(lines[last])
    return (last, found) if last is not None and found else None


def _refuse_hidden(source: Source) -> bool:
    """Add problems for aliases and tags, and return whether there were any.

    Every alias is refused, because a change at its anchor changes quotas on lines that a review
    does not show.
    """
    if "&" not in source.text and "!" not in source.text:
        return False
    found = 0
    for event in yaml.parse(source.text, LOADER):
        if isinstance(event, yaml.AliasEvent):
            message = f"*{show(str(event.anchor))} is an alias."
            remedy = "Write the values out, so that a review shows every limit that changes."
        elif getattr(event, "tag", None) is not None:
            message = "YAML tags are not allowed."
            remedy = "Remove it: quota-ops reads names and texts as they are written."
        else:
            continue
        start: Any = event.start_mark
        end: Any = event.end_mark
        found += 1
        if found > MOST_HIDDEN:
            message = "The file has more aliases or tags from here on."
        span = Span(start.line, start.column, end.column - start.column)
        source.refuse_at(span, message, remedy)
        if found > MOST_HIDDEN:
            break
    return found > 0
