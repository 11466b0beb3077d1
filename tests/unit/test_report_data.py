"""The report for programs."""

import json
import re
from math import inf, nan

from msgspec.structs import replace

from quota_ops.model.runs.rollback import Rollback, Undone
from quota_ops.model.stored import to_json
from quota_ops.report.records.json_report import as_json
from tests.unit.report_sample import ALICE_RAISED, DIFFERENCES, FAILED, PLAN, TROUBLED


def test_head() -> None:
    """A program finds the verdict, the counts and the response of every broker."""
    report = json.loads(as_json(TROUBLED))

    told = re.findall(r"\w+", as_json.__doc__ or "")
    assert {*report, *report["plan"]} <= set(told)
    assert list(report) == [
        "schema",
        "cluster",
        "cluster_id",
        "run",
        "commit",
        "commit_source",
        "uncommitted",
        "by",
        "login",
        "started",
        "finished",
        "looked",
        "writes",
        "answer",
        "counts",
        "verified",
        "stages",
        "plan",
        "invalid",
        "warnings",
        "rollback",
        "clients",
        "throttling",
        "findings",
        "protected",
        "capacity",
        "decisions",
        "brokers",
        "versions",
        "rows",
    ]
    assert (report["schema"], report["answer"]["status"], report["counts"]) == (
        2,
        "Needs attention",
        {
            "in_sync": 410,
            "overridden": 0,
            "changed": 1,
            "found": 0,
            "unread": 0,
            "pending": 0,
            "overriding": 0,
            "drifted": 0,
            "returned": 0,
            "held": 0,
            "not_judged": 0,
            "unsettled": 3,
            "unmanaged": 2,
            "forgotten": 0,
        },
    )
    assert report["brokers"][3] == {
        "broker": 4,
        "address": "kafka-4:9094",
        "queries": 6,
        "lagging": None,
        "error": "timed out",
        "bootstrap": False,
        "absent": False,
        "compared": 0,
        "skipped": 0,
    }


def test_row() -> None:
    """A row has its difference, its place and each response to it, and nothing null."""
    rows = {row["entity"]: row for row in json.loads(as_json(TROUBLED))["rows"]}

    assert rows["user=alice"] == {
        "entity": "user=alice",
        "key": "producer_byte_rate",
        "kind": "pending",
        "action": "set",
        "before": 10485760.0,
        "after": 15728640.0,
        "verified": 10485760.0,
        "owner": "payments",
        "reason": "card settlement",
        "file": "payments.yaml",
        "line": 8,
        "commit": "9c0ffee1d2",
        "run": "2026-11-14T10-00-00Z",
        "since": "2026-11-14T10:00:09Z",
        "target": 15728640.0,
        "status": "unsettled",
        "validated": {"batch": 1, "status": "accepted"},
        "applied": {"batch": 1, "status": "accepted"},
        "verdict": "differs",
        "seen": [[3, 10485760.0]],
    }


def test_rows_have_one_order() -> None:
    """Two reports of the same rows are the same text, whatever order the rows came in."""
    turned = replace(TROUBLED, plan=replace(PLAN, differences=DIFFERENCES[::-1]))

    assert json.loads(as_json(turned))["rows"] == json.loads(as_json(TROUBLED))["rows"]


def test_numbers_that_json_lacks_are_strings() -> None:
    """NaN and infinity, which brokers before 4.4 store, do not break a strict parser."""
    rows = (ALICE_RAISED._replace(before=nan), ALICE_RAISED._replace(before=inf, key="k"))

    text = as_json(replace(TROUBLED, plan=replace(PLAN, differences=rows)))

    parsed = json.loads(text, parse_constant=refuse)
    assert [row["before"] for row in parsed["rows"]] == ["inf", "nan"]


def refuse(name: str) -> None:
    """Refuse a constant that is not JSON."""
    raise AssertionError(name)


def test_a_failed_run() -> None:
    """Without a plan there are no rows, and the plan is null."""
    report = json.loads(as_json(FAILED))

    assert (report["plan"], report["rows"], report["answer"]["status"]) == (None, [], "Unknown")


def test_a_rollback() -> None:
    """For a rollback a program finds which run, who, why, and each row."""
    row = Undone("user=a", "producer_byte_rate", 1.0, nan, "team", verified=True, left="moved")
    rollback = Rollback("that", "c1", "digest", "anna", "INC-31", (row,))

    report = json.loads(as_json(replace(TROUBLED, rollback=rollback)))

    assert report["rollback"] == to_json(Rollback, rollback)
