"""Tables of a page: the first rows as HTML, and all rows as data that its script draws from."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from quota_ops.report.outline.formats import escape_text
from quota_ops.report.page.parts import PageRow

FIRST = 50
"""How many rows of a table are drawn at first, without a script at all; the rest is data."""


class PageTable(NamedTuple):
    """A table with a caption, grouped by owner; `number` names it in the data of the page."""

    number: int
    caption: str
    rows: Sequence[PageRow]
    owners: Mapping[str, int]
    """How many rows each owner has, in order; empty if there is one owner only."""

    @property
    def first(self) -> Sequence[PageRow]:
        """The rows that are HTML."""
        return self.rows[:FIRST]


def make_tables(tables: Iterable[tuple[str, Iterable[PageRow]]]) -> list[PageTable]:
    """Return tables by their captions and rows; the owner of the riskiest row comes first."""
    return [_group_by_owner(number, caption, rows) for number, (caption, rows) in enumerate(tables)]


def _group_by_owner(number: int, caption: str, rows: Iterable[PageRow]) -> PageTable:
    groups: dict[str, list[PageRow]] = {}
    for row in rows:
        groups.setdefault(row.owner, []).append(row)
    owners = {owner: len(group) for owner, group in groups.items()} if len(groups) > 1 else {}
    return PageTable(number, caption, [row for group in groups.values() for row in group], owners)


_SLOTS = PageRow(*(f"{{{field}}}" for field in PageRow._fields))


def format_data(
    tables: Iterable[PageTable], draw: Callable[[PageRow], str], limits: dict[str, Any] | None
) -> Markup:
    """Return all rows as JSON that is safe inside a script element; `draw` returns a row as HTML.

    forms   the HTML of rows with `{field}` in place of texts, for rows that lack the same ones
    texts   each text once
    tables  for each table its rows: the number of its form, and that of a text for each field
    """
    forms: dict[PageRow, int] = {}
    texts: dict[str, int] = {}
    rows = [
        [
            [
                forms.setdefault(_blank(row), len(forms)),
                *(texts.setdefault(text, len(texts)) for text in row),
            ]
            for row in table.rows
        ]
        for table in tables
    ]
    values = {
        "fields": ("form", *PageRow._fields),
        "first": FIRST,
        "limits": limits,
        "forms": list(map(draw, forms)),
        "texts": list(map(escape_text, texts)),
        "tables": rows,
    }
    text = json.dumps(values, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - no character of HTML is left


def _blank(row: PageRow) -> PageRow:
    """Return a row with the names of its fields in place of its texts, except the style."""
    slots = (slot if text else "" for slot, text in zip(_SLOTS, row, strict=True))
    return PageRow(*slots)._replace(style=row.style)


def list_choices(tables: Iterable[PageTable]) -> dict[str, list[str]]:
    """Return each filter of a page with up to 1,000 of the values that occur."""
    rows = [row for table in tables for row in table.rows]
    found = {name: {getattr(row, name) for row in rows} - {""} for name in ("owner", "kind", "key")}
    found["news"] = {row.news for row in rows} - {""}
    return {name: sorted(values)[:1000] for name, values in found.items()}
