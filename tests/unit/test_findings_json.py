"""Findings and silences in a run folder are read back unchanged, or not at all."""

import json
from typing import Any

import pytest

from quota_ops.model.finding import Finding, Location, Silence
from quota_ops.store.run_json import (
    checked_from_json,
    checked_json,
    finding_json,
    findings_from_json,
)

FINDING = Finding("QO105", "client-id=app", "request_percentage", "Never holds.", "Remove it.")
FINDINGS = (
    FINDING,
    FINDING._replace(place=Location("team.yaml", 3), silenced="later"),
    FINDING._replace(code="QO203", entity=None, key=None, place=Location("team.yaml", 3, 7)),
)
SILENCES = (
    Silence("QO105", "later", None, Location("cluster.yaml", 3, 21)),
    Silence("QO105", "later", "client-id=app", Location("team.yaml", 5, 7)),
)


def test_findings_come_back_as_they_were() -> None:
    """The findings that check writes are those that plan reads."""
    written = json.loads(json.dumps(checked_json(FINDINGS, SILENCES)))

    assert checked_from_json(written) == (FINDINGS, SILENCES)


@pytest.mark.parametrize(
    "damage",
    [
        {"code": "QO999"},
        {"code": None},
        {"message": None},
        {"silenced": True},
        {"entity": 1},
        {"place": ["team.yaml"]},
        {"place": ["team.yaml", "3", None]},
        {"place": "here"},
        {"more": 1},
    ],
)
def test_a_damaged_finding_is_none(damage: dict[str, Any]) -> None:
    """A changed or damaged finding is an error that readers of a run handle."""
    values = {"findings": [finding_json(FINDING) | damage]}

    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        findings_from_json(values)
