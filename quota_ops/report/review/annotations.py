"""Annotations: what a review has to say about one line, in the formats of GitHub and GitLab."""

import json
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from quota_ops.findings.codes import CODES, Severity
from quota_ops.model.finding import Finding, Problem
from quota_ops.model.plans.guard import MEANINGS, GuardFinding, format_override
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.runs.review import ClusterReview, Review
from quota_ops.report.outline import cells
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.row_status import ReportRow
from quota_ops.report.review.rows import find_place, split_rows

MOST_OF_A_LEVEL = 10
"""GitHub shows ten errors, ten warnings and ten notices of a step."""
INVALID, REJECTED, NOT_JUDGED = "invalid", "rejected", "cannot_judge"
"""The rules of problems in files, of changes that the broker rejects, and of no verdict."""


class Level(StrEnum):
    """How serious an annotation is, in GitHub's words; the most serious first."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Annotation(NamedTuple):
    """A remark on a line of a file, whose path is below the root of the repository.

    `rule` is the code of a finding, the name of a guard, INVALID, REJECTED or NOT_JUDGED.
    """

    level: Level
    path: str
    line: int
    column: int | None
    rule: str
    message: str


def list_annotations(review: Review) -> tuple[Annotation, ...]:
    """Return all annotations, the most serious first, then by file and line."""
    found = [_of_problem(problem) for problem in review.problems]
    for cluster in review.clusters:
        found += [_of_problem(problem) for problem in cluster.problems]
        found += _of_unjudged(cluster)
        found += _of_rows(cluster)
        found += [
            _of_finding(cluster.folder, finding) for finding in cluster.findings if finding.place
        ]
    levels = list(Level)
    return tuple(
        sorted(
            set(found),
            key=lambda each: (levels.index(each.level), each._replace(column=each.column or 0)),
        )
    )


def _of_problem(problem: Problem) -> Annotation:
    message = " ".join(filter(None, (problem.message, problem.remedy)))
    return Annotation(Level.ERROR, problem.file, problem.line, problem.column, INVALID, message)


def _of_unjudged(review: ClusterReview) -> Iterator[Annotation]:
    """Yield why there is no verdict, beside a line that each cluster has."""
    for reason in review.unjudged:
        words = ": ".join(filter(None, (f"Cannot judge, because {reason.what}", reason.detail)))
        lines = f"{words.rstrip('.')}. {reason.remedy}".rstrip().split("\n")
        message = " ".join(map(str.strip, lines))
        path = f"{review.folder}/cluster.yaml"
        yield Annotation(Level.ERROR, path, 1, None, NOT_JUDGED, message)


def _of_finding(folder: str, finding: Finding) -> Annotation:
    is_warning = CODES[finding.code].severity is Severity.WARNING
    level = Level.WARNING if is_warning else Level.NOTICE
    place = finding.place
    path, line, column = (place.file, place.line, place.column) if place else ("", 1, None)
    message = f"{finding.message} {finding.remedy}"
    return Annotation(level, f"{folder}/{path}", line, column, finding.code, message)


def _of_rows(review: ClusterReview) -> Iterator[Annotation]:
    """Yield the changes that the broker rejects, and those that guards block."""
    plan = review.report.plan if review.report else None
    if plan is None:
        return
    rows = split_rows(review).written
    for row in rows:
        if row.validated is not None and row.validated.status not in DONE:
            words = cells.describe_outcome(row.validated)
            yield _of_row(review, row, Level.ERROR, REJECTED, f"{_name(row)} is {words}")
    for guard in plan.refused:
        blocked = [row for row in rows if guard.guard in row.guards]
        declared = [row for row in blocked if row.difference.after is not None]
        for row in declared:
            yield _of_row(
                review, row, Level.WARNING, guard.guard, _describe_guard(_name(row), guard)
            )
        if not declared:  # about removed rows or the whole plan, so no line shows it
            path = f"{review.folder}/cluster.yaml"
            message = _describe_guard(guard.message, guard)
            yield Annotation(Level.WARNING, path, 1, None, guard.guard, message)


def _of_row(
    review: ClusterReview, row: ReportRow, level: Level, rule: str, message: str
) -> Annotation:
    path, line, is_at_base = find_place(review, row) or (f"{review.folder}/cluster.yaml", 1, True)
    return Annotation(level, path, 1 if is_at_base else line or 1, None, rule, message)


def _name(row: ReportRow) -> str:
    difference = row.difference
    return f"{difference.entity} {difference.key}, {cells.current(row)} to {cells.desired(row)},"


def _describe_guard(what: str, guard: GuardFinding) -> str:
    way = f"To override it: {format_override(guard.guard)}."
    return f"{what.rstrip(',')}: guard {guard.guard} needs approval. {MEANINGS[guard.guard]} {way}"


def as_workflow_commands(annotations: Iterable[Annotation]) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each annotation that GitHub would show."""
    room = dict.fromkeys(Level, MOST_OF_A_LEVEL)
    for annotation in annotations:
        if room[annotation.level] == 0:
            continue
        room[annotation.level] -= 1
        column = f",col={annotation.column}" if annotation.column else ""
        where = f"file={_property(annotation.path)},line={annotation.line}{column}"
        title = _property(f"quota-ops: {annotation.rule}")
        message = _data(escape_text(annotation.message))
        yield f"::{annotation.level} {where},title={title}::{message}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_SARIF = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_MOST = 5_000
"""GitHub shows 5,000 results of a file, the most serious ones."""
_SARIF_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTICE: "note"}
_SEVERITIES = {Level.ERROR: "critical", Level.WARNING: "minor", Level.NOTICE: "info"}
_RULES = {
    INVALID: "The YAML is invalid.",
    REJECTED: "The broker rejects the change.",
    NOT_JUDGED: "A comparison could not be made, so there is no verdict.",
    **MEANINGS,
    **{name: code.title for name, code in CODES.items()},
}


def as_sarif(annotations: Sequence[Annotation], version: str) -> str:
    """Return a SARIF 2.1.0 file; `version` is the version of quota-ops."""
    rules = [
        {"id": rule, "shortDescription": {"text": _RULES[rule]}}
        for rule in sorted({annotation.rule for annotation in annotations})
    ]
    driver = {"name": "quota-ops", "semanticVersion": version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "results": [_result(annotation) for annotation in annotations[:_MOST]],
    }
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(annotation: Annotation) -> dict[str, Any]:
    region = {"startLine": annotation.line} | (
        {"startColumn": annotation.column} if annotation.column else {}
    )
    return {
        "ruleId": annotation.rule,
        "level": _SARIF_LEVELS[annotation.level],
        "message": {"text": _plain(annotation.message)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(annotation.path, errors="replace")},
                    "region": region,
                }
            }
        ],
        "partialFingerprints": {"quotaOps/v1": _fingerprint(annotation)},
    }


def _plain(text: str) -> str:
    """Return text in which no bracket begins a link (SARIF 2.1.0, 3.11.6)."""
    text = escape_text(text).replace("\\", "\\\\")
    return text.replace("[", "\\[").replace("]", "\\]")


def as_code_quality(annotations: Sequence[Annotation]) -> str:
    """Return a code quality report of GitLab."""
    issues = [
        {
            "description": escape_text(annotation.message),
            "check_name": annotation.rule,
            "fingerprint": _fingerprint(annotation),
            "severity": _SEVERITIES[annotation.level],
            "location": {"path": annotation.path, "lines": {"begin": annotation.line}},
        }
        for annotation in annotations
    ]
    return json.dumps(issues, indent=1) + "\n"


def _fingerprint(annotation: Annotation) -> str:
    """Return an id that stays the same when lines are added above."""
    text = json.dumps([annotation.rule, annotation.path, annotation.message])
    return sha256(text.encode()).hexdigest()[:32]
