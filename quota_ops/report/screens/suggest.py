"""The screen of `suggest`: the limits that use suggests, and the patch that declares them."""

from collections.abc import Sequence

from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.text import counted, format_percent
from quota_ops.model.usage.suggestion import Suggestion
from quota_ops.model.usage.use import UseOverview
from quota_ops.report.outline.layout import Screen, Table, line
from quota_ops.report.screens.usage import list_coverage

_HEADINGS = ("entity", "key", "limit", "suggested", "change", "why")


def suggestions_screen(overview: UseOverview, found: Sequence[Suggestion]) -> Screen:
    """Return a row for each quota that use says something about, those with a limit first."""
    rows = sorted(found, key=lambda each: (each.suggested is None, each.entity, each.key))
    number = sum(each.suggested is not None for each in found)
    return (
        *list_coverage(overview),
        line(),
        *((Table.of(_HEADINGS, map(_list_cells, rows)), line()) if rows else ()),
        line(f"{counted(number, 'limit')} suggested for {counted(len(overview.quotas), 'quota')}."),
    )


def _list_cells(found: Suggestion) -> tuple[str, ...]:
    suggested, change = "", ""
    if found.suggested is not None:
        suggested = format_limit(found.key, found.suggested)
        percent = 100 * (found.suggested / found.limit - 1)
        rounded = float(f"{percent:.3g}")
        change = format_percent(rounded if rounded > -100 else percent)  # noqa: PLR2004 - all of it
    limit = format_limit(found.key, found.limit)
    return found.entity, found.key, limit, suggested, change, found.reason
