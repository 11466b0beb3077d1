"""The audit record of a run: complete, valid by its schema, and split to fit a broker's limit."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from quota_ops.model.runs.report import Report
from quota_ops.model.runs.rollback import Rollback
from quota_ops.stages.report.audit import (
    PART_BYTES,
    audit_record,
    audit_schema,
    list_changes,
    messages,
)
from tests.unit.report_sample import ALICE_RAISED, APPLIED, FAILED, PLAN, PLANNED, TROUBLED

MAX_MESSAGE_BYTES = 1_048_588
"""message.max.bytes of a broker that nobody configured."""


def record_of(report: Report, end: int) -> dict[str, Any]:
    """Return the record of a run with the list of its changes, as one message."""
    [sent] = messages(audit_record(report, end), list_changes(report))
    record: dict[str, Any] = json.loads(sent)
    return record


def problems(record: dict[str, Any]) -> list[str]:
    """Return the problems of a record according to the published schema."""
    return [one.message for one in Draft202012Validator(audit_schema()).iter_errors(record)]


@pytest.mark.parametrize("report", [PLANNED, APPLIED, TROUBLED, FAILED])
def test_a_record_is_as_its_schema_says(report: Report) -> None:
    """However a run ended, its record is valid; a record with a field missing or wrong is not."""
    rollback = Rollback("that", "c1", "digest", "anna", "INC-31", ())
    record = record_of(replace(report, rollback=rollback), 2)

    assert problems(record) == []
    assert problems({name: value for name, value in record.items() if name != "brokers"}) == [
        "'brokers' is a required property"
    ]
    assert problems(record | {"schema": 2}) == ["2 is not one of [1]"]


def test_what_became_of_a_change() -> None:
    """Each planned row has the request, the broker's response and the value read back."""
    changes = {one["entity"]: one for one in record_of(APPLIED, 1)["changes"]}

    assert len(changes) == 4
    assert changes["user=alice"] == {
        "entity": "user=alice",
        "key": "producer_byte_rate",
        "kind": "pending",
        "before": ALICE_RAISED.before,
        "after": ALICE_RAISED.after,
        "owner": "payments",
        "reason": "card settlement",
        "source": "payments.yaml:8",
        "outcome": "accepted",
        "verdict": "verified",
    }


def test_a_large_run_goes_in_parts() -> None:
    """Every change is in one part; each part is small enough and has its number and the total."""
    rows = tuple(ALICE_RAISED._replace(entity=f"user=u{number}") for number in range(5_000))
    report = replace(PLANNED, plan=replace(PLAN, differences=rows))

    sent = messages(audit_record(report, 1), list_changes(report))

    assert len(sent) > 2
    assert max(map(len, sent)) < MAX_MESSAGE_BYTES
    parts = [json.loads(one) for one in sent]
    assert [(part["part"], part["parts"]) for part in parts] == [
        (at, len(sent)) for at in range(1, len(sent) + 1)
    ]
    assert [change for part in parts for change in part["changes"]] == json.loads(
        json.dumps([*list_changes(report)])
    )
    assert PART_BYTES < MAX_MESSAGE_BYTES / 2
