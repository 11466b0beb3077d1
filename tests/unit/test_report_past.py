"""New drift and known drift, in words."""

from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.history.history import DayHistory, QuotaHistory
from quota_ops.model.history.past import Past
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.rows import Key
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import Origin
from quota_ops.report.outline.cells import change
from quota_ops.report.outline.past import describe_past, find_since
from quota_ops.report.outline.row_status import report_rows
from quota_ops.report.outline.summary import summarize
from quota_ops.report.page.past import add_run
from tests.unit.report_sample import CLUSTER_ID, MIB, PLAN, PLANNED, difference

DAY = DayHistory("demo", "2026-11-20", 24, 24, *(0,) * 5, *(None,) * 10)
DRIFT = (Kind.DRIFTED, Action.SET)
RAISED = difference({"user": "alice"}, "producer_byte_rate", DRIFT, 20 * MIB, 10 * MIB)
DELETED = difference({"user": "bob"}, "producer_byte_rate", DRIFT, None, 10 * MIB)


def quota_history(name: str, **known: object) -> QuotaHistory:
    """Return the history of a user's producer_byte_rate; what is not given is null."""
    nothing = dict.fromkeys(QuotaHistory._fields, None)
    place = {"cluster": "demo", "entity": f"user={name}", "key": "producer_byte_rate"}
    return QuotaHistory(**nothing | place | {"drifts": 0, "times_seen": 0} | known)  # type: ignore[arg-type]


KNOWN = quota_history(
    "bob", drifts=5, times_seen=80, drifted_since="2026-11-18T10:00:00Z",
    set_at="2026-11-01T08:00:00Z", set_run="r1", set_commit="a1b2c3d4", set_value=10 * MIB,
)  # fmt: skip
ALTERED = quota_history(
    "alice", altered_at="2026-11-21T09:00:00Z", altered_run="r7", altered_by="anna",
    altered_reason="INC-31", altered_value=20 * MIB,
)  # fmt: skip
DRIFTED_BEFORE = quota_history("alice", drifts=1, drifted_since="2026-11-20T10:00:00Z")
UNTIL = "the next run changes nothing until"
APPROVES = ", or approves the plan in Airflow or CI"
FOUND = "Known: first found 2026-11-18 10:00 UTC"
NO_ALTER = "No alter in the history did it, and Kafka does not record who did."


def report_of(*quotas: QuotaHistory, **more: object) -> Report:
    """Return a drift report of RAISED and DELETED with a history."""
    known = {Key(quota.entity, quota.key): quota for quota in quotas}
    past = replace(Past(known, (DAY,)), **more)
    plan = replace(PLAN, differences=(RAISED, DELETED), desired=20, actual=19)
    return replace(PLANNED, plan=plan, validated=(), past=past)


def words_of(report: Report) -> list[list[str]]:
    """Return the past of each row."""
    return [describe_past(row, report.past, report.started) for row in report_rows(report)]


def test_the_past_of_a_row() -> None:
    """A row shows since when it is known, who altered it and why, and which run set it last."""
    assert words_of(report_of(KNOWN, ALTERED)) == [
        [
            "New: no earlier run found it.",
            "Changed by anna with alter on 2026-11-21 09:00 UTC: INC-31 (run r7).",
        ],
        [
            f"{FOUND}, 3 days before this run. It drifted 4 times before.",
            NO_ALTER,
            "Set last by run r1 on 2026-11-01 08:00 UTC, as commit a1b2c3d declared.",
        ],
    ]


def test_since_when_a_row_has_its_value() -> None:
    """An alter tells when it set the value; otherwise a time before that is known.

    That is when the run before found no drift or, if it did, when the ledger last had the value.
    """
    row = report_rows(report_of())[0]
    row = replace(row, difference=RAISED._replace(since="2026-11-21T08:00:00Z"))

    found = [find_since(row, report_of(*known).past) for known in ((ALTERED,), ())]
    assert found == ["2026-11-21 09:00 UTC", "after 2026-11-21 08:00 UTC"]
    for compared, since in (("09:15", "09:15"), ("07:00", "08:00")):
        report = report_of(compared=f"2026-11-21T{compared}:00Z")
        assert find_since(row, report.past) == f"after 2026-11-21 {since} UTC"
    report = report_of(DRIFTED_BEFORE, compared="2026-11-21T09:15:00Z")
    assert find_since(row, report.past) == "after 2026-11-21 08:00 UTC", "it had drifted already"


def test_an_alter_without_a_reason() -> None:
    """A row names what is known of the alter that changed it: an alter needs no reason."""
    silent = ALTERED._replace(altered_reason=None)
    nameless = silent._replace(altered_by=None)

    assert [words_of(report_of(quota))[0][1] for quota in (silent, nameless)] == [
        "Changed by anna with alter on 2026-11-21 09:00 UTC (run r7).",
        "Changed with alter on 2026-11-21 09:00 UTC (run r7).",
    ]


def test_an_alter_that_was_replaced_explains_nothing() -> None:
    """An alter of another value, or before the last run that set the quota, is not named."""
    other = ALTERED._replace(altered_value=1.0)
    earlier = ALTERED._replace(set_at="2026-11-21T09:30:00Z", set_run="r8", set_value=1.0)

    damaged = report_of(other, trouble="The history is not complete: x.")

    assert words_of(report_of(other))[0] == ["New: no earlier run found it.", NO_ALTER]
    assert words_of(damaged)[0] == [], "an alter may be in the part that is missing"
    assert words_of(report_of(earlier))[0][1:] == [
        NO_ALTER,
        "Set last by run r8 on 2026-11-21 09:30 UTC.",
    ]


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (report_of(KNOWN), "1 new, 1 known"),
        (report_of(), "new since the last run"),
        (
            report_of(KNOWN, ALTERED._replace(drifted_since="2026-11-19T10:00:00Z")),
            "known since 2026-11-18 10:00 UTC",
        ),
        (report_of(days=()), None),
        (report_of(trouble="The history cannot be read: no."), None),
        (replace(report_of(), past=None), None),
    ],
)  # fmt: skip
def test_the_summary_tells_new_drift_from_known(report: Report, words: str | None) -> None:
    """The sentence of notifications and reports has it, unless the history is not known."""
    details = summarize(report).details

    assert details == (*((words,) if words else ()), "18 of 20 quotas in sync")
    assert report.cluster_id == CLUSTER_ID


def test_a_deletion_is_not_new() -> None:
    """A quota that somebody deleted on the cluster is shown as deleted."""
    assert [change(row) for row in report_rows(report_of())] == ["-50 %", "was deleted"]


def test_an_origin_is_shown_once() -> None:
    """The note of an unmanaged row names the alter that set it, so its past does not."""
    report = replace(report_of(ALTERED), origins={RAISED.id: Origin("set by anna with alter")})

    assert words_of(report)[0] == ["New: no earlier run found it."]


def test_the_newest_day_of_a_chart_is_this_run() -> None:
    """The charts end with the state that the report shows; the days before stay as they were."""
    report = report_of(KNOWN, ALTERED)
    today = DAY._replace(date=report.finished[:10], changed=3, declared=20, in_sync=20, drifted=0)
    now: dict[str, Any] = {"declared": 20, "in_sync": 18, "drifted": 2, "not_judged": 0}

    assert add_run((DAY,), report) == (DAY, DAY._replace(date=today.date, **now))
    assert add_run((DAY, today), report) == (DAY, today._replace(**now))
    assert add_run((), report) == ()
    assert add_run((DAY,), replace(report, plan=None)) == (DAY,)
