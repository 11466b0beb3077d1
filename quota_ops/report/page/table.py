"""Tables of a page: the first rows as HTML, and all rows as data that its script draws from."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress, count, islice
from typing import Any, NamedTuple

from markupsafe import Markup

from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.row_status import ReportRow
from quota_ops.report.page.parts import Columns
from quota_ops.store.places.json_text import line

FIRST = 50
"""How many rows of a table are drawn at first, without a script at all; the rest is data."""


class PageTable(NamedTuple):
    """A table with a caption, grouped by owner; `number` names it in the data of the page."""

    number: int
    caption: str
    columns: Columns
    owners: Mapping[str, int]
    """How many rows each owner has, in order; empty if there is one owner only."""

    @property
    def size(self) -> int:
        """How many rows it has."""
        return len(self.columns["entity"])

    @property
    def first(self) -> list[dict[str, str]]:
        """The rows that are drawn at first."""
        rows = islice(zip(*self.columns.values(), strict=True), FIRST)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]


def make_table(
    number: int,
    caption: str,
    rows: Iterable[ReportRow],
    list_cells: Callable[[Sequence[ReportRow]], Columns],
) -> PageTable:
    """Return a table of rows; the owner of the riskiest row comes first."""
    groups: dict[str, list[ReportRow]] = {}
    for row in rows:
        groups.setdefault(row.difference.owner or "", []).append(row)
    owners = {owner: len(group) for owner, group in groups.items()} if len(groups) > 1 else {}
    return PageTable(number, caption, list_cells([*chain(*groups.values())]), owners)


def format_data(
    tables: Sequence[PageTable],
    draw: Callable[[Mapping[str, str]], str],
    limits: dict[str, Any] | None,
) -> Markup:
    """Return all rows as JSON that is safe inside a script element; `draw` returns a row as HTML.

    forms   the HTML of rows with `{field}` in place of texts, for rows that lack the same ones
    texts   each text once
    tables  for each table how many rows it has, and the columns `form` and those of `Columns`: the
            number of a form or a text for each row, or one number if all rows have the same
    """
    forms = defaultdict[tuple[str, frozenset[str]], int](count().__next__)
    texts = defaultdict[str, int](count().__next__)

    def number(columns: Columns) -> dict[str, list[int] | int]:
        distinct = {name: {*column} for name, column in columns.items()}
        numbers: dict[str, list[int] | int] = {
            name: [texts[cell] for cell in column] if len(distinct[name]) > 1 else texts[column[0]]
            for name, column in columns.items()
        }
        filled = {name for name, found in distinct.items() if "" not in found}
        mixed = [name for name, found in distinct.items() if "" in found and len(found) > 1]
        has_texts = (map(bool, columns[name]) for name in mixed)
        shapes = list(zip(columns["style"], *has_texts, strict=True))
        form_of = {
            (style, *has): forms[style, frozenset(filled.union(compress(mixed, has)))]
            for style, *has in dict.fromkeys(shapes)
        }
        numbers["form"] = [form_of[shape] for shape in shapes]
        return numbers if len(form_of) > 1 else numbers | {"form": form_of[shapes[0]]}

    values = {
        "first": FIRST,
        "limits": limits,
        "tables": [
            {"rows": table.size, "columns": number(table.columns) if table.size else {}}
            for table in tables
        ],
        "forms": [
            draw(
                {name: f"{{{name}}}" if name in has else "" for name in tables[0].columns}
                | {"style": style}
            )
            for style, has in forms
        ],
        "texts": list(map(escape_text, texts)),
    }
    text = line(values)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - no character of HTML is left


def list_choices(tables: Iterable[PageTable]) -> dict[str, list[str]]:
    """Return each filter of a page with up to 1,000 of the values that occur."""
    columns = [table.columns for table in tables]
    names = ("owner", "kind", "key", "news")
    return {
        name: sorted({*chain(*(each[name] for each in columns))} - {""})[:1000] for name in names
    }
