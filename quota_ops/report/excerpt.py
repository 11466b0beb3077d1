"""The line of a file that has a problem, and a mark under the place."""

from quota_ops.model.problem import Problem
from quota_ops.report.screen import Line, Span, Tone, line, width
from quota_ops.report.wording import shown

BEFORE, AFTER = 60, 90
"""How many characters of a long line are shown before the place, and from it on."""


def excerpt(problem: Problem) -> tuple[Line, ...]:
    """The line as it stands, cut around the place where it is long, and the place underlined."""
    if problem.excerpt is None:
        return ()
    at = problem.column - 1
    begin = max(0, at - BEFORE)
    text = problem.excerpt[begin : at + AFTER]
    head = shown(("…" if begin else "") + text[: at - begin])
    marked = shown(text[at - begin :][: max(1, problem.length)])
    tail = "…" if at + AFTER < len(problem.excerpt) else ""
    number = f"{problem.line:6} | "
    whole = head + shown(text[at - begin :]) + tail
    under = " " * (len(number) + width(head)) + "^" * max(1, width(marked))
    return ((Span(number, Tone.CONTEXT), Span(whole)), line(under, Tone.REFUSAL))
