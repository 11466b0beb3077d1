"""Annotations as SARIF for GitHub's code scanning, and as GitLab's code quality report."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from quota_ops.findings.codes import CODES
from quota_ops.model.plans.guard import MEANINGS
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.review.annotations import INVALID, NOT_JUDGED, REJECTED, Annotation, Level

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
