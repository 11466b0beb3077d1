"""Tables of a page: the first rows as HTML, and all rows as data that its script draws from."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from markupsafe import Markup

from quota_ops.report.outline.formats import escape_text
from quota_ops.report.page.parts import PageRow
from quota_ops.store.places.json_text import line

FIRST = 50
"""How many rows of a table are drawn at first, without a script at all; the rest is data."""


class PageTable(NamedTuple):
    """A table with a caption, grouped by owner; `number` names it in the data of the page."""

    number: int
    caption: str
    rows: Sequence[PageRow]
    owners: Mapping[str, int]
    """How many rows each owner has, in order; empty if there is one owner only."""


def make_tables(tables: Iterable[tuple[str, Iterable[PageRow]]]) -> list[PageTable]:
    """Return tables by their captions and rows; the owner of the riskiest row comes first."""
    return [_group_by_owner(number, caption, rows) for number, (caption, rows) in enumerate(tables)]


def _group_by_owner(number: int, caption: str, rows: Iterable[PageRow]) -> PageTable:
    groups: dict[str, list[PageRow]] = {}
    for row in rows:
        groups.setdefault(row.owner, []).append(row)
    owners = {owner: len(group) for owner, group in groups.items()} if len(groups) > 1 else {}
    return PageTable(number, caption, [row for group in groups.values() for row in group], owners)


def format_data(
    tables: Iterable[PageTable],
    draw: Callable[[Mapping[str, str]], str],
    limits: dict[str, Any] | None,
) -> Markup:
    """Return all rows as JSON that is safe inside a script element; `draw` returns a row as HTML.

    forms   the HTML of rows with `{field}` in place of texts, for rows that lack the same ones
    texts   each text once
    tables  for each table how many rows it has, and the columns `form` and those of a PageRow: the
            number of a form or a text for each row, or one number if all rows have the same
    """
    forms = defaultdict[tuple[Any, ...], int](count().__next__)
    texts = defaultdict[str, int](count().__next__)

    def number(rows: Sequence[PageRow]) -> dict[str, list[int] | int]:
        columns = dict(zip(PageRow._fields, zip(*rows, strict=True), strict=True))
        numbers = {name: list(map(texts.__getitem__, column)) for name, column in columns.items()}
        has_texts = (map(bool, column) for column in columns.values())
        numbers["form"] = [forms[form] for form in zip(columns["style"], *has_texts, strict=True)]
        return {name: found if len({*found}) > 1 else found[0] for name, found in numbers.items()}

    values = {
        "first": FIRST,
        "limits": limits,
        "tables": [
            {"rows": len(table.rows), "columns": number(table.rows) if table.rows else {}}
            for table in tables
        ],
        "forms": [
            draw(
                {
                    name: f"{{{name}}}" if has else ""
                    for name, has in zip(PageRow._fields, has_texts, strict=True)
                }
                | {"style": style}
            )
            for style, *has_texts in forms
        ],
        "texts": list(map(escape_text, texts)),
    }
    text = line(values)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - no character of HTML is left


def list_choices(tables: Iterable[PageTable]) -> dict[str, list[str]]:
    """Return each filter of a page with up to 1,000 of the values that occur."""
    rows = [row for table in tables for row in table.rows]
    names = ("owner", "kind", "key", "news")
    return {name: sorted({getattr(row, name) for row in rows} - {""})[:1000] for name in names}
