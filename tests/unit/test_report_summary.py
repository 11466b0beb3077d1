"""The sentence that summarizes a run."""

import pytest
from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import Absent, Metadata
from quota_ops.model.commit import Provenance
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.stages import Life, StageStatus
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.report.outline.summary import summarize
from tests.unit.report_sample import (
    ALICE_RAISED,
    APPLIED,
    ETL_REMOVED,
    FAILED,
    LEGACY,
    PLAN,
    PLANNED,
    TROUBLED,
    answered,
    stages,
)
from tests.unit.test_report_row_status import SET, report_of

VERIFY_ONLY = replace(
    APPLIED,
    plan=None,
    validated=(),
    applied=(),
    verification=replace(APPLIED.verification, verified=412),
    writes=False,
)
WRITTEN = answered(Status.ACCEPTED, SET)
VERDICTS = (RowVerdict("user=alice", "producer_byte_rate", 1.0, Verdict.DIFFERS),)
SILENT = BrokerResult(4, "kafka-4:9094", 6, None, "timed out")


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (
            PLANNED,
            (
                "1 quota on demo was changed outside Git; 3 pending; 1 guard blocks the plan; 409 "
                "of 412 quotas in sync; 2 unmanaged."
            ),
        ),
        (report_of(ALICE_RAISED), "1 change to make on demo; 411 of 412 quotas in sync."),
        (
            APPLIED,
            (
                "demo matches Git; 4 changes made by this run; 412 of 412 quotas in sync; 3 of 3 "
                "brokers agree; 2 unmanaged."
            ),
        ),
        (
            TROUBLED,
            (
                "3 quotas on demo are not confirmed; 1 differs, 1 refused, 1 unknown; apply was "
                "incomplete; 1 change made by this run; 410 of 412 quotas in sync; 2 of 4 brokers "
                "agree; 2 unmanaged."
            ),
        ),
        (
            replace(
                report_of(
                    ALICE_RAISED, plan=replace(PLAN, differences=(ALICE_RAISED, ETL_REMOVED))
                ),
                stages=stages(apply="refused"),
                applied=(
                    *answered(Status.ACCEPTED, ALICE_RAISED),
                    *answered(Status.STALE, ETL_REMOVED),
                ),
            ),
            (
                "1 quota on demo was changed after the plan was made, and not written; apply was "
                "incomplete; 1 change was written and not read back; 411 of 412 quotas in sync."
            ),
        ),
        (
            replace(
                report_of(ALICE_RAISED),
                stages=stages(apply="refused"),
                applied=answered(Status.STALE, ALICE_RAISED),
            ),
            (
                "1 quota on demo was changed after the plan was made, and not written; apply was "
                "refused; 411 of 412 quotas in sync."
            ),
        ),
        (
            replace(
                APPLIED,
                stages=stages(verify="refused"),
                verification=replace(APPLIED.verification, verdicts=VERDICTS),
            ),
            (
                "1 quota on demo does not have the desired value on every broker; verify was "
                "unsuccessful; 3 changes made by this run; 411 of 412 quotas in sync; 3 of 3 "
                "brokers agree; 2 unmanaged."
            ),
        ),
        (FAILED, "describe failed, so the state of demo is unknown."),
        (
            replace(APPLIED, verification=Verification(), stages=stages(verify="not run")),
            (
                "verify did not run, so it is unknown whether demo matches Git; 4 changes were "
                "written and not read back; 409 of 412 quotas in sync; 2 unmanaged."
            ),
        ),
        (
            report_of(SET, applied=WRITTEN, stages=stages(verify="failed")),
            (
                "verify failed, so it is unknown whether demo matches Git; 1 change was written "
                "and not read back; 411 of 412 quotas in sync."
            ),
        ),
        (
            replace(
                report_of(SET, applied=WRITTEN, stages=stages(verify="failed")),
                superseded=Verification("2026-11-21T10:15:00Z", 411, verdicts=VERDICTS),
            ),
            (
                "verify failed, so it is unknown whether demo matches Git; 1 change was written "
                "and not read back since 2026-11-21 10:15 UTC, when 411 of 412 quotas were "
                "verified; 411 of 412 quotas in sync."
            ),
        ),
        (
            report_of(SET, applied=answered(Status.ALREADY, SET), stages=stages(verify="not run")),
            ("demo matches Git; 1 change was already stored; 412 of 412 quotas in sync."),
        ),
        (
            report_of(
                SET,
                applied=answered(Status.UNKNOWN, SET),
                stages=stages(apply="not ended"),
                life=Life.GONE,
            ),
            (
                "it is unknown whether 1 quota on demo was written; apply was interrupted; 411 of "
                "412 quotas in sync."
            ),
        ),
        (
            report_of(
                SET,
                applied=answered(Status.NOT_SENT, SET),
                stages=stages(apply="not ended"),
                life=Life.RUNNING,
            ),
            (
                "apply is running, so it is unknown whether demo matches Git; 1 pending; 411 of "
                "412 quotas in sync."
            ),
        ),
        (VERIFY_ONLY, "demo matches Git; 412 of 412 quotas in sync; 3 of 3 brokers agree."),
        (
            replace(VERIFY_ONLY, provenance=Provenance(uncommitted=("team.yaml",))),
            (
                "demo matches the files, which are not all committed; 412 of 412 quotas in sync; 3 "
                "of 3 brokers agree."
            ),
        ),
        (
            report_of(LEGACY, metadata=Metadata(absent=(Absent(3, None, "is fenced"),))),
            (
                "broker 3 could not be queried, so it is unknown whether demo matches Git; 412 of "
                "412 quotas in sync; broker 3 is fenced; 1 unmanaged."
            ),
        ),
        (
            replace(
                VERIFY_ONLY,
                verification=replace(VERIFY_ONLY.verification, brokers=(SILENT,)),
                stages=stages(verify=StageStatus.REFUSED),
            ),
            (
                "broker 4 did not respond, so it is unknown whether demo matches Git; 412 of 412 "
                "quotas in sync; 0 of 1 broker agrees."
            ),
        ),
        (
            report_of(SET, applied=answered(Status.UNKNOWN, SET)),
            "it is unknown whether 1 quota on demo was written; 411 of 412 quotas in sync.",
        ),
        (
            replace(report_of(LEGACY), stages=stages(validate=StageStatus.FAILED)),
            (
                "validate failed, so it is unknown whether demo matches Git; 412 of 412 quotas in "
                "sync; 1 unmanaged."
            ),
        ),
    ],
)
def test_summary_sentence(report: Report, sentence: str) -> None:
    """One sentence gives the status, and no failure looks like success."""
    assert summarize(report).sentence == sentence
