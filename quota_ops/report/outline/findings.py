"""Problems and findings as text and JSON, and the explanation of each code."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from quota_ops.findings.codes import CODES, SILENCEABLE, Code, Severity
from quota_ops.model.finding import Finding, Problem
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import Line, Screen, Span, Table, Tone, line, width

MOST, FEW = 100, 10
"""The most findings that a report lists, and that a mixed screen lists; JSON has all of them."""
EXPLAIN = "quota-ops findings CODE"
EXPLAINED = f"{EXPLAIN} explains a code, and how to silence it."

_TONES = {Severity.WARNING: Tone.CHANGE, Severity.NOTICE: Tone.CONTEXT}


def finding_lines(
    findings: Sequence[Finding], under: str = "", *, most: int = MOST
) -> Iterator[Line]:
    """Yield a line for each finding, `most` at most; `under` is the folder of the files."""
    for finding in findings[:most]:
        code = CODES[finding.code]
        where = f"{under}/{finding.place}" if under and finding.place else finding.where
        yield (
            Span(where, Tone.STRONG),
            Span(f"  {code.code} {code.severity}", _TONES[code.severity]),
            Span(f"  {finding.message} {finding.remedy}"),
        )
    if findings[most:]:
        yield line(describe_rest(findings, most), Tone.CONTEXT)
    if findings:
        yield line(EXPLAINED, Tone.CONTEXT)


def describe_rest(findings: Sequence[Finding], most: int = MOST) -> str:
    """Return the number of findings that are not listed, as text; empty if all are listed."""
    left_out = len(findings) - most
    return f"… and {counted(left_out, 'more finding')} in the JSON output" if left_out > 0 else ""


def findings_json(findings: Iterable[Finding], under: str = "") -> list[dict[str, Any]]:
    """Return the findings as JSON values, including silenced ones."""
    return [
        {
            "code": finding.code,
            "severity": CODES[finding.code].severity,
            "entity": finding.entity,
            "key": finding.key,
            "file": (f"{under}/{finding.place.file}" if under else finding.place.file)
            if finding.place
            else None,
            "line": finding.place and finding.place.line,
            "column": finding.place and finding.place.column,
            "message": finding.message,
            "remedy": finding.remedy,
            "silenced": finding.silenced,
        }
        for finding in findings
    ]


def codes_screen() -> Screen:
    """Return a table of all codes, and how to read about one."""
    rows = (
        (Span(code.code, Tone.STRONG), Span(code.severity, _TONES[code.severity]), code.title)
        for code in CODES.values()
    )
    return (Table.of(("code", "severity", "what it is"), rows), line(), line(EXPLAINED))


def code_screen(code: Code) -> Screen:
    """Return the meaning of a code, why it matters, and how to fix and silence it."""
    return (
        (
            Span(code.code, Tone.STRONG),
            Span(f" {code.severity}", _TONES[code.severity]),
            Span(f"  {code.title}"),
        ),
        line(),
        line(code.means),
        line(code.hurts),
        line(code.remedy),
        line(),
        *(line(f"  {text}", Tone.CONTEXT) for text in code.example.split("\n")),
        line(),
        line(f"Decided by {code.decided_by}."),
        line(HOW_TO_SILENCE.format(silence_of(code)) if code.code in SILENCEABLE else NOT_SILENCED),
    )


HOW_TO_SILENCE = (
    "If this is intended, add {} beside the limits, or in cluster.yaml for the whole cluster."
)
NOT_SILENCED = "It cannot be silenced."


def silence_of(code: Code) -> str:
    """Return the YAML that silences a code."""
    return f"silence: [{{finding: {code.code}, reason: WHY}}]"


BEFORE, AFTER = 60, 90
"""The characters of a long line that are shown before and after the start of the place."""


def excerpt(problem: Problem) -> tuple[Line, ...]:
    """Return the line with the place underlined; a long line is cut around the place."""
    if problem.excerpt is None:
        return ()
    at = problem.column - 1
    begin = max(0, at - BEFORE)
    text = problem.excerpt[begin : at + AFTER]
    head = escape_text(("…" if begin else "") + text[: at - begin])
    marked = escape_text(text[at - begin :][: max(1, problem.length)])
    tail = "…" if at + AFTER < len(problem.excerpt) else ""
    number = f"{problem.line:6} | "
    whole = head + escape_text(text[at - begin :]) + tail
    under = " " * (len(number) + width(head)) + "^" * max(1, width(marked))
    return ((Span(number, Tone.CONTEXT), Span(whole)), line(under, Tone.REFUSAL))
