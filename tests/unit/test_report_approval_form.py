"""The question before a plan is applied."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from quota_ops.model.commit import CommitSource, Provenance, rollback_of
from quota_ops.report.approval_form import format_body
from tests.unit.report_sample import PLAN, TROUBLED


@pytest.mark.parametrize(
    ("commit", "told"),
    [("a1b2c3d4e5f6", "a1b2c3d"), (rollback_of("2026-11-21-7f3a"), "rollback of 2026-11-21-7f3a")],
)
def test_what_the_plan_was_made_from(commit: str, told: str) -> None:
    """A commit is shortened as Git does it; a run that is rolled back is named in full."""
    report = replace(TROUBLED, provenance=Provenance(commit, CommitSource.COMPARED))
    markdown = format_body(report, PLAN, datetime(2026, 11, 21, tzinfo=UTC))

    assert f" · commit `{told}`" in markdown.partition("\n")[0]
