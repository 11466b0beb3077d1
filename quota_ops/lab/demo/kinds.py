"""Every kind of difference, shown by the rows of a real plan."""

from collections.abc import Iterator, Sequence

from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.guard import Guard
from quota_ops.report.cells import KIND_MEANING
from quota_ops.report.screen import Line, Span, Tone

SHOWN = (
    Kind.PENDING,
    Kind.DRIFTED,
    Kind.TAKEOVER,
    Kind.CONFLICT,
    Kind.REMOVED,
    Kind.CHANGED_SINCE,
    Kind.UNMANAGED,
    Kind.GONE,
)
"""The kinds that the story leads to; the others need a run that did not finish, or an old value."""

_DOES = {
    Action.SET: "sets it",
    Action.CLEAR: "clears it",
    Action.FORGET: "forgets it",
    Action.REPORT: "leaves it alone",
}


def missing_kinds(differences: Sequence[Difference]) -> list[str]:
    """The kinds that no difference is of; a new and a changed pending row count as two."""
    seen = {one.kind for one in differences}
    new = {one.before is None for one in differences if one.kind is Kind.PENDING}
    lacking = [kind.value for kind in SHOWN if kind not in seen]
    return lacking if new == {True, False} else [*lacking, "pending, both new and changed"]


KINDS = ("kind", "what it means", "here", "what a run does")
"""The headings above `kinds_cells`."""


def kinds_cells(differences: Sequence[Difference]) -> Iterator[Line]:
    """Each kind, what it means, a row of it, and what a run does with it."""
    first = {one.kind: one for one in reversed(differences)}
    for kind in filter(first.get, SHOWN):
        asks = ", if a person agrees" if kind.value in set(Guard) else ""
        yield (
            Span(kind.replace("_", " "), Tone.CHANGE),
            Span(KIND_MEANING[kind]),
            Span(first[kind].entity, Tone.STRONG),
            Span(_DOES[first[kind].action] + asks),
        )
