"""Annotations as SARIF for GitHub's code scanning, and as GitLab's code quality report."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from quota_ops.findings.codes import CODES
from quota_ops.model.guard import MEANINGS
from quota_ops.report.formats import escape_text
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
    **{code: one.title for code, one in CODES.items()},
}


def as_sarif(annotations: Sequence[Annotation], version: str) -> str:
    """Return a SARIF 2.1.0 file; `version` is that of quota-ops."""
    rules = [
        {"id": rule, "shortDescription": {"text": _RULES[rule]}}
        for rule in sorted({one.rule for one in annotations})
    ]
    driver = {"name": "quota-ops", "semanticVersion": version, "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_result(one) for one in annotations[:_MOST]]}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(one: Annotation) -> dict[str, Any]:
    region = {"startLine": one.line} | ({"startColumn": one.column} if one.column else {})
    return {
        "ruleId": one.rule,
        "level": _SARIF_LEVELS[one.level],
        "message": {"text": _plain(one.message)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(one.path, errors="replace")},
                    "region": region,
                }
            }
        ],
        "partialFingerprints": {"quotaOps/v1": _fingerprint(one)},
    }


def _plain(text: str) -> str:
    """Return text in which no bracket begins a link (SARIF 2.1.0, 3.11.6)."""
    text = escape_text(text).replace("\\", "\\\\")
    return text.replace("[", "\\[").replace("]", "\\]")


def as_code_quality(annotations: Sequence[Annotation]) -> str:
    """Return a code quality report of GitLab."""
    issues = [
        {
            "description": escape_text(one.message),
            "check_name": one.rule,
            "fingerprint": _fingerprint(one),
            "severity": _SEVERITIES[one.level],
            "location": {"path": one.path, "lines": {"begin": one.line}},
        }
        for one in annotations
    ]
    return json.dumps(issues, indent=1) + "\n"


def _fingerprint(one: Annotation) -> str:
    """Return an id that stays the same when lines are added above."""
    text = json.dumps([one.rule, one.path, one.message])
    return sha256(text.encode()).hexdigest()[:32]
