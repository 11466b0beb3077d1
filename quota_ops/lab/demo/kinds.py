"""Every kind of difference, illustrated by the rows of a real plan."""

from collections.abc import Iterator, Sequence

from quota_ops.model.plans.guard import Guard
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.report.outline.cells import KIND_MEANING
from quota_ops.report.outline.layout import Line, Span, Tone

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
"""The kinds that the demo shows; others need an unfinished run, a returned value, or a quota by
hand that overrides Git."""

_DOES = {
    Action.SET: "sets it",
    Action.CLEAR: "clears it",
    Action.FORGET: "forgets it",
    Action.REPORT: "leaves it",
}


def missing_kinds(differences: Sequence[Difference]) -> list[str]:
    """Return the kinds that no difference has; new and changed pending rows count as two kinds."""
    seen = {difference.kind for difference in differences}
    new = {
        difference.before is None for difference in differences if difference.kind is Kind.PENDING
    }
    lacking = [kind.value for kind in SHOWN if kind not in seen]
    return lacking if new == {True, False} else [*lacking, "pending, both new and changed"]


KINDS = ("kind", "what it means", "example", "what a run does")
"""The headings above `kinds_cells`."""


def kinds_cells(differences: Sequence[Difference]) -> Iterator[Line]:
    """Yield the cells of each kind: its name, its meaning, an example entity, a run's action."""
    first = {difference.kind: difference for difference in reversed(differences)}
    for kind in filter(first.get, SHOWN):
        approval = " after approval" if kind.value in set(Guard) else ""
        yield (
            Span(kind.replace("_", " "), Tone.CHANGE),
            Span(KIND_MEANING[kind]),
            Span(first[kind].entity, Tone.STRONG),
            Span(_DOES[first[kind].action] + approval),
        )
