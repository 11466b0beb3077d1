"""The status of each row at the end of a run."""

import pytest
from msgspec.structs import replace

from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.verification import RowVerdict, Verdict
from quota_ops.report.outline.row_status import RowStatus, Section, count_statuses, report_rows
from tests.unit.report_sample import APPLIED, BROKERS, LEGACY, PLAN, PLANNED, answered, difference


def one_row(kind: Kind, action: Action, before: float | None, after: float | None) -> Difference:
    """Return a difference of the one user that these tests need."""
    return difference({"user": "alice"}, "producer_byte_rate", (kind, action), before, after)


SET = one_row(Kind.PENDING, Action.SET, 1.0, 2.0)
REPAIR = one_row(Kind.DRIFTED, Action.SET, 1.0, 2.0)
GONE = one_row(Kind.GONE, Action.FORGET, None, None)


def report_of(row: Difference, **more: object) -> Report:
    """Return a report about one row."""
    changes = {"plan": replace(PLAN, differences=(row,)), "validated": (), **more}
    return replace(PLANNED, **changes)


UNANSWERED = Verification(verdicts=(RowVerdict(SET.entity, SET.key, 2.0, Verdict.UNANSWERED),))
DIFFERS = Verification(
    verdicts=(RowVerdict(SET.entity, SET.key, 2.0, Verdict.DIFFERS, ((1, 1.0),)),)
)
AGREES = Verification(brokers=BROKERS)


@pytest.mark.parametrize(
    ("report", "status", "section"),
    [
        (report_of(SET), RowStatus.PENDING, Section.CHANGE),
        (report_of(REPAIR), RowStatus.DRIFTED, Section.PERSON),
        (report_of(SET, applied=answered(Status.ACCEPTED, SET)), RowStatus.CHANGED, Section.CHANGE),
        (report_of(REPAIR, applied=answered(Status.ALREADY, SET)), RowStatus.FOUND, Section.REST),
        (report_of(SET, applied=answered(Status.STALE, SET)), RowStatus.UNSETTLED, Section.PERSON),
        (
            report_of(SET, applied=answered(Status.UNKNOWN, SET)),
            RowStatus.UNSETTLED,
            Section.PERSON,
        ),
        (report_of(SET, applied=answered(Status.NOT_SENT, SET)), RowStatus.PENDING, Section.PERSON),
        (
            report_of(SET, validated=answered(Status.REFUSED, SET)),
            RowStatus.UNSETTLED,
            Section.PERSON,
        ),
        (
            report_of(SET, applied=answered(Status.ACCEPTED, SET), verification=DIFFERS),
            RowStatus.UNSETTLED,
            Section.PERSON,
        ),
        (
            report_of(SET, applied=answered(Status.ACCEPTED, SET), verification=UNANSWERED),
            RowStatus.UNSETTLED,
            Section.PERSON,
        ),
        (report_of(SET, verification=DIFFERS), RowStatus.PENDING, Section.CHANGE),
        (
            report_of(one_row(Kind.DRIFTED, Action.REPORT, 1.0, 2.0)),
            RowStatus.DRIFTED,
            Section.PERSON,
        ),
        (
            report_of(one_row(Kind.TAKEOVER, Action.REPORT, 1.0, 2.0)),
            RowStatus.PENDING,
            Section.CHANGE,
        ),
        (
            report_of(one_row(Kind.IN_SYNC, Action.RECORD, 2.0, 2.0)),
            RowStatus.IN_SYNC,
            Section.REST,
        ),
        (report_of(LEGACY), RowStatus.UNMANAGED, Section.REST),
        (report_of(GONE), RowStatus.DRIFTED, Section.PERSON),
        (report_of(GONE, verification=AGREES, writes=True), RowStatus.FORGOTTEN, Section.REST),
        (
            report_of(one_row(Kind.CLEARED, Action.FORGET, None, None)),
            RowStatus.FORGOTTEN,
            Section.REST,
        ),
    ],
)
def test_row_status(report: Report, status: RowStatus, section: Section) -> None:
    """The last event of a row decides its status."""
    (row,) = report_rows(report)

    assert (row.status, row.section) == (status, section)


def test_a_row_that_a_broker_lost_is_reported_though_it_was_in_sync() -> None:
    """A broker that lags on an untouched quota removes it from those in sync."""
    verdict = RowVerdict("user=bob", "request_percentage", 50.0, Verdict.DIFFERS, ((2, None),))
    report = replace(APPLIED, verification=replace(APPLIED.verification, verdicts=(verdict,)))

    rows = report_rows(report)

    assert (rows[0].difference.entity, rows[0].status) == ("user=bob", RowStatus.UNSETTLED)
    numbers = {status: number for status, number in count_statuses(report).items() if number}
    assert numbers == {
        RowStatus.IN_SYNC: 408,
        RowStatus.CHANGED: 4,
        RowStatus.UNSETTLED: 1,
        RowStatus.UNMANAGED: 2,
    }
    assert count_statuses(report).keys() == set(RowStatus)


def test_rows_stay_with_their_report() -> None:
    """What is derived from one report is not lost when another thread derives that of its own."""
    first, second = report_of(SET), report_of(REPAIR)
    rows, counts = report_rows(first), count_statuses(first)
    assert report_rows(second) != rows
    assert (report_rows(first), count_statuses(first)) == (rows, counts)
    assert report_rows(first) is rows
    assert count_statuses(first) is counts
