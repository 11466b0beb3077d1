"""Rows that change because one profile changed: shown once, with the quotas that it moves."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.text import counted, name_first
from quota_ops.report.outline import cells
from quota_ops.report.outline.effects import effect_parts
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.row_status import ReportRow

_PROFILE = re.compile(r"profile [^()]*\([^()]*\)")
"""The profile in a derivation: `profile gold (cluster.yaml:5)`."""
_LEAST = 3
_NAMED = 3


class Fold(NamedTuple):
    """The rows of one key that a profile moves from one value to another."""

    profile: str
    rows: Sequence[ReportRow]

    def list_entities(self, format_name: Callable[[str], str] = escape_text) -> str:
        """Return the number of quotas, and the first of their entities."""
        named = name_first((row.difference.entity for row in self.rows), _NAMED, format_name)
        return f"{counted(len(self.rows), 'quota')}: {named}"


def fold_profiles(rows: Sequence[ReportRow]) -> tuple[list[Fold], list[ReportRow]]:
    """Return the changes of profiles that concern three quotas or more, and all other rows.

    A row that needs attention, or that says more than its values, is never folded.
    """
    groups: dict[tuple[object, ...], list[ReportRow]] = {}
    for row in rows:
        difference = row.difference
        profile = _PROFILE.search(difference.derivation or "")
        if profile and difference.action in WRITES and _is_plain(row):
            values = difference.key, difference.before, difference.target, row.status
            groups.setdefault((profile[0], *values), []).append(row)
    folds = [Fold(str(key[0]), of) for key, of in groups.items() if len(of) >= _LEAST]
    folded = {row.difference.id for fold in folds for row in fold.rows}
    return folds, [row for row in rows if row.difference.id not in folded]


def _is_plain(row: ReportRow) -> bool:
    says_more = cells.trouble(row) or cells.held(row) or cells.origin(row) or effect_parts(row)
    return not (row.guarded or row.difference.is_drift or says_more)
