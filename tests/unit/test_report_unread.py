"""A broker that is unreachable during verify: unchanged rows are counted, not listed."""

import json

from msgspec.structs import replace

from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.report.outline.row_status import RowStatus, report_rows
from quota_ops.report.outline.summary import summarize
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.text.report import as_text
from quota_ops.stages.report.audit import audit_record
from tests.unit.report_sample import ALICE_RAISED, BROKERS, PLAN, PLANNED, answered, stages

NOBODY_ANSWERED = replace(
    PLANNED,
    plan=replace(PLAN, differences=(ALICE_RAISED,)),
    applied=answered(Status.ACCEPTED, ALICE_RAISED),
    stages=stages(verify="failed"),
    verification=Verification(
        brokers=(BrokerResult(4, "kafka-4:9094", 6, None, "timed out"),),
        verdicts=tuple(
            RowVerdict(entity, ALICE_RAISED.key, 1.0, Verdict.UNANSWERED)
            for entity in (ALICE_RAISED.entity, *(f"user=u{one}" for one in range(411)))
        ),
    ),
)
"""One change of 412 quotas, after which the only broker died."""


def test_what_nobody_read_back_is_counted_and_does_not_differ() -> None:
    """Rows that were neither changed nor read back are a number, in every output."""
    rows = report_rows(NOBODY_ANSWERED)

    assert [(row.difference, row.status) for row in rows] == [(ALICE_RAISED, RowStatus.UNSETTLED)]
    said = "411 quotas that this run did not change were not read back: no broker responded."
    assert summarize(NOBODY_ANSWERED).sentence == (
        "1 change on demo was not read back; verify failed; 411 not read back; "
        "0 of 412 quotas in sync; 0 of 1 broker agrees."
    )
    values = json.loads(as_json(NOBODY_ANSWERED))
    assert (values["counts"]["unread"], values["counts"]["in_sync"]) == (411, 0)
    assert values["warnings"] == [said]
    assert len(values["rows"]) == 1
    for text in (as_text(NOBODY_ANSWERED), as_html(NOBODY_ANSWERED)):
        assert said in text
        assert "user=u7" not in text
        assert "accepted; no broker responded afterwards" in text


def test_a_change_that_nobody_read_back_is_counted_as_one() -> None:
    """The list of runs has who wrote it, and that it wrote: a broker accepted it."""
    assert audit_record(NOBODY_ANSWERED, 1).changed == 1


def test_verify_without_a_plan_counts_what_it_left_out() -> None:
    """If some quotas are held, the verdict claims no more than was compared."""
    brokers = tuple(replace(broker, compared=410, skipped=2) for broker in BROKERS)
    read = Verification(brokers=brokers, verified=410)
    report = replace(PLANNED, plan=None, validated=(), verification=read)

    assert summarize(replace(report, stages=stages())).sentence == (
        "2 quotas on demo are held or waiting, and were not compared; 410 of 412 quotas in sync; "
        "3 of 3 brokers agree on 410 of 412 keys (2 were skipped)."
    )
