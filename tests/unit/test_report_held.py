"""Held rows, and a cluster that must not be written, in each output for people."""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from quota_ops.model.plans.hold import Hold
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.rollback import Rollback
from quota_ops.report.outline.row_status import RowStatus, count_statuses
from quota_ops.report.outline.sentences import describe_holds
from quota_ops.report.outline.summary import summarize
from quota_ops.report.page import fleet as fleet_page
from quota_ops.report.page.report import as_html
from quota_ops.report.text.report import as_text
from tests.unit.report_sample import (
    ALICE_RAISED,
    APPLIED,
    DEFAULT_RAISED,
    MIB,
    PLAN,
    PLANNED,
    answered,
    difference,
)

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
WHO = parse_exactly(["user=bob"], [], [])
HOLD = Hold(WHO, NOW + timedelta(hours=2), "anna\x1b[31m", "INC-31 | <b>", NOW)
BOB = difference(
    {"user": "bob"}, "producer_byte_rate", (Kind.DRIFTED, Action.HELD), 20 * MIB, 10 * MIB,
    file="payments.yaml", line=9, held=HOLD.text,
)  # fmt: skip
HELD = replace(
    PLANNED,
    plan=replace(
        PLAN, differences=(BOB,), holds=(HOLD,), standstill="frozen until 2026-11-23 07:00 UTC: x"
    ),
)
SAID = "held until 2026-11-21 05:12 UTC by anna\\u001b[31m: INC-31 | <b>"
FROZEN = "demo is frozen until 2026-11-23 07:00 UTC: x. Nothing is written; reports continue."


def test_as_text() -> None:
    """The row has a section of its own; no control character of a reason reaches the terminal."""
    lines = as_text(HELD).splitlines()

    assert lines[2:5] == [FROZEN, f"user=bob is {SAID}", ""]
    assert lines[5] == "Held (1)"
    assert lines[7].endswith(f"payments.yaml:9  unknown  {SAID}")


def test_as_a_page() -> None:
    """The page shows it above the rows and beside the row."""
    page = as_html(HELD)

    said = SAID.replace("<", "&lt;").replace(">", "&gt;")
    assert page.count(said) == 2
    assert FROZEN in page


def test_the_answer() -> None:
    """Held is neither drift nor in sync; a hold after the plan counts as held, not as a failure."""
    since = replace(
        PLANNED,
        plan=replace(PLAN, differences=(ALICE_RAISED,)),
        applied=answered(Status.HELD, ALICE_RAISED, message=HOLD.text),
    )

    assert summarize(HELD).sentence.startswith("1 quota on demo is held; 411 of 412 ")
    assert summarize(since).sentence.startswith("1 quota on demo is held; 411 of 412 ")
    assert [count_statuses(report)[RowStatus.HELD] for report in (HELD, since)] == [1, 1]


def test_a_rollback_beside_a_hold_has_rolled_back() -> None:
    """A rollback that left a held row alone is no longer pending; one that wrote nothing is."""
    plan = replace(PLAN, differences=(ALICE_RAISED, BOB._replace(kind=Kind.PENDING)))
    rollback = Rollback("run-1", None, "digest", "anna", "", ())
    rolled_back = replace(
        APPLIED, plan=plan, rollback=rollback, applied=answered(Status.ACCEPTED, ALICE_RAISED)
    )
    held = replace(rolled_back, applied=answered(Status.HELD, ALICE_RAISED, message=HOLD.text))

    assert [summarize(report)[:3] for report in (rolled_back, held)] == [
        (
            "Rolled back",
            "run run-1 on demo",
            ("1 held", "1 change made by this run", "3 of 3 brokers agree"),
        ),
        ("Pending", "2 quotas on demo are held", ("3 of 3 brokers agree",)),
    ]


def test_held_drift_is_drift() -> None:
    """The quotas that were changed outside Git are counted with those that are held."""
    plan = replace(PLAN, differences=(DEFAULT_RAISED, BOB), holds=(HOLD,))

    assert summarize(replace(PLANNED, plan=plan)).sentence.startswith(
        "2 quotas on demo were changed outside Git, 1 of which is held; 1 held; 410 of 412 "
    )


def test_holds_that_end_soon() -> None:
    """The page lists the first to end first, and both pages show when: it is true when read later.

    They count those that end within a week.
    """
    until = {"carol": timedelta(hours=5), "etl": timedelta(days=12), "spark": timedelta(days=2)}
    now = datetime.fromisoformat(HELD.finished)
    holds = tuple(
        replace(HOLD, who=parse_exactly([f"user={name}"], [], []), until=now + left)
        for name, left in until.items()
    )
    report = replace(HELD, plan=replace(PLAN, holds=holds))

    one = replace(report, plan=replace(PLAN, holds=holds[:2]))
    assert [words.split()[0] for words in describe_holds(report)] == [
        "user=carol",
        "user=spark",
        "user=etl",
    ]
    assert " · 2 holds end, the first at 2026-11-21 15:15 UTC" in as_html(report)
    assert "; 2 holds end, the first at 2026-11-21 15:15 UTC" in fleet_page.as_html(
        [("demo", report)]
    )
    assert " · 1 hold ends at 2026-11-21 15:15 UTC" in as_html(one)
