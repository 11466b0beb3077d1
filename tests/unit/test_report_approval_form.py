"""The question before a plan is applied."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from quota_ops.model.commit import CommitSource, Provenance, rollback_of
from quota_ops.model.quotas.difference import Kind
from quota_ops.report.markdown.approval_form import format_body
from tests.unit.report_sample import PLAN, TROUBLED, many_changes

UNTIL = datetime(2026, 11, 21, tzinfo=UTC)
PAGE = "https://airflow.example/quota-ops/runs/demo/one/report.html"


@pytest.mark.parametrize(
    ("commit", "told"),
    [("a1b2c3d4e5f6", "a1b2c3d"), (rollback_of("2026-11-21-7f3a"), "rollback of 2026-11-21-7f3a")],
)
def test_what_the_plan_was_made_from(commit: str, told: str) -> None:
    """A commit is shortened as Git does it; a run that is rolled back is named in full."""
    report = replace(TROUBLED, provenance=Provenance(commit, CommitSource.COMPARED))
    markdown = format_body(report, PLAN, UNTIL, PAGE)

    assert f" · commit `{told}`" in markdown.partition("\n")[0]


def test_many_changes_stay_readable() -> None:
    """Of 600 changes the form counts each owner's by kind, lists ten, and links to the others."""
    report = many_changes(600)
    assert report.plan is not None
    owners = ("payments", *(f"team-{at}|" for at in range(20)), None)
    changes = [
        difference._replace(owner=owners[at % 22], kind=Kind.TAKEOVER if at % 3 else Kind.PENDING)
        for at, difference in enumerate(report.plan.differences)
    ]
    plan = replace(report.plan, differences=tuple(changes))
    lines = format_body(replace(report, plan=plan), plan, UNTIL, PAGE).splitlines()

    assert f"[600 changes in the report](<{PAGE}>)" in lines[2]
    assert lines[6] == "| owner | changes | pending | takeover |"
    assert lines[8] == "| `payments` | 28 | 10 | 18 |"
    assert lines[9] == "| `team-0\\|` | 28 | 9 | 19 |"
    assert lines[20] == "| 10 more owners | 270 | | |"
    assert sum(line.startswith("| ↑") for line in lines) == 10
    assert len(lines) < 45
