"""The numbers of every output add up, whatever happened in a run."""

import json
import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quota_ops.model.plans.guard_rules import EarlierRuns, judge
from quota_ops.model.quotas.difference import WRITES, Action, Difference, Kind
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.verification import RowVerdict, Verdict
from quota_ops.report.outline.layout import plain
from quota_ops.report.outline.row_status import RowStatus, Section, count_statuses, report_rows
from quota_ops.report.outline.sentences import describe_verified
from quota_ops.report.outline.summary import summarize
from quota_ops.report.page.parts import bar
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.screens.plan import plan_screen
from quota_ops.report.text.report import as_text
from tests.unit.report_sample import APPLIED, BROKERS, PLAN, PLANNED, difference

_IN_GIT = (Kind.PENDING, Kind.DRIFTED, Kind.TAKEOVER, Kind.CONFLICT)
_NOT_IN_GIT = (Kind.REMOVED, Kind.CHANGED_SINCE, Kind.UNMANAGED)
JUDGED = st.sampled_from(
    [
        *((kind, action) for kind in _IN_GIT for action in (Action.SET, Action.HELD)),
        *((kind, action) for kind in _NOT_IN_GIT for action in (Action.CLEAR, Action.HELD)),
        *((kind, Action.REPORT) for kind in (Kind.DRIFTED, *_NOT_IN_GIT)),
        (Kind.OVERRIDING, Action.REPORT),
        *((Kind.IN_SYNC, action) for action in (Action.RECORD, Action.HELD)),
        *((kind, action) for kind in (Kind.GONE, Kind.CLEARED) for action in (Action.FORGET,)),
    ]
)
"""Every kind with each action that the diff gives it."""

PLANS = st.tuples(st.lists(JUDGED, max_size=30), st.integers(0, 2000))
STATUSES = st.lists(st.sampled_from(list(Status)), min_size=30, max_size=30)


def _rows(judged: Sequence[tuple[Kind, Action]]) -> tuple[Difference, ...]:
    """Return a row of each kind, with the values that its kind has on the two sides."""
    return tuple(
        difference(
            {"user": f"user-{at}"},
            "producer_byte_rate",
            (kind, action),
            None if kind in {Kind.GONE, Kind.CLEARED} else 5.0,
            _after(kind),
        )
        for at, (kind, action) in enumerate(judged)
    )


def _after(kind: Kind) -> float | None:
    return {Kind.IN_SYNC: 5.0, **dict.fromkeys(_IN_GIT, 7.0)}.get(kind)


def _report(of: Report, judged: Sequence[tuple[Kind, Action]], others: int) -> Report:
    rows = _rows(judged)
    desired = others + sum(row.after is not None for row in rows)
    plan = replace(PLAN, differences=rows, desired=desired, guards=())
    earlier = EarlierRuns(owned=1000, owners={}, policy=None, commits=())
    guards = judge(
        plan.writes, policy=plan.policy, commit=None, desired=desired, earlier=earlier, risks={}
    )
    read = replace(of.verification, verdicts=())
    return replace(of, plan=plan.with_guards(guards), validated=(), applied=(), verification=read)


_HEADING = re.compile(
    r"(?P<change>[\d,]+) to change of (?P<whole>[\d,]+)"
    r"( \((?P<set>[\d,]+) to set, (?P<clear>[\d,]+) to clear\))?, (?P<sync>[\d,]+) in sync"
    r"(, (?P<held>[\d,]+) held)?(, [\d,]+ not judged)?(, (?P<reported>[\d,]+) only reported)?"
    r"(, (?P<gone>[\d,]+) gone)?(, (?P<overriding>[\d,]+) unmanaged that overrides? Git)?"
    r", (?P<unmanaged>[\d,]+) (other )?unmanaged$",
    re.MULTILINE,
)


@given(PLANS)
def test_a_plan_lists_as_many_rows_as_its_heading_counts(
    given_plan: tuple[list[tuple[Kind, Action]], int],
) -> None:
    """Changes, rows in sync, held and only reported add up to the total, and each row is listed."""
    report = _report(PLANNED, *given_plan)
    screen = plain(plan_screen(report))
    found = _HEADING.search(screen)
    assert found is not None, screen
    number = {name: int((text or "0").replace(",", "")) for name, text in found.groupdict().items()}
    plan, listed = report.plan, len(re.findall(r"  user=user-\d+  +producer_byte_rate  ", screen))
    assert plan is not None

    whole = number["change"] + number["sync"] + number["held"] + number["reported"]
    assert whole == number["whole"]
    assert number["set"] + number["clear"] in {0, number["change"]}
    assert number["change"] == len(plan.writes)
    shown = ("change", "held", "reported", "gone", "overriding")
    assert sum(number[one] for one in shown) >= listed
    assert listed >= number["change"] + number["gone"] + number["overriding"]
    removals = [guard.message for guard in plan.guards if guard.guard == "removals"]
    clears = number["clear"] or (number["change"] if plan.writes else 0)
    assert [int(removal.split()[0].replace(",", "")) for removal in removals] in ([], [clears])


@given(PLANS, STATUSES, st.sets(st.integers(0, 29)))
def test_the_numbers_of_a_report_add_up(
    given_plan: tuple[list[tuple[Kind, Action]], int], statuses: list[Status], wrong: set[int]
) -> None:
    """Sections, bar, JSON and sentence count every row once, and agree on those in sync."""
    report = _report(APPLIED, *given_plan)
    plan = report.plan
    assert plan is not None
    report = replace(
        report,
        applied=tuple(
            Outcome(1, row.entity, (row.key,), status)
            for row, status in zip(plan.differences, statuses, strict=False)
            if row.action in WRITES
        ),
        verification=replace(
            report.verification,
            verdicts=tuple(
                RowVerdict(row.entity, row.key, row.target, Verdict.DIFFERS, ((1, 9.0),))
                for at, row in enumerate(plan.differences)
                if at in wrong and row.action in {*WRITES, Action.RECORD}
            ),
        ),
    )
    rows, count = report_rows(report), count_statuses(report)
    text = as_text(report)
    headings = re.findall(
        r"^(?:Needs attention|Changed|Held|Everything else) \(([\d,]+)\)$", text, re.MULTILINE
    )

    assert sum(int(heading.replace(",", "")) for heading in headings) == len(rows)
    assert len(rows) == sum(len([row for row in rows if row.section is one]) for one in Section)
    in_sync_rows = sum(row.status is RowStatus.IN_SYNC for row in rows)
    assert sum(count.values()) - count[RowStatus.IN_SYNC] + in_sync_rows == len(rows)
    assert (
        sum(part.quotas for part in bar(count)) == sum(count.values()) - count[RowStatus.FORGOTTEN]
    )
    said = re.search(r"([\d,]+) of ([\d,]+) quotas? in sync", summarize(report).sentence)
    assert said is not None
    counts = json.loads(as_json(report))["counts"]
    assert [int(one.replace(",", "")) for one in said.groups()] == [counts["in_sync"], plan.desired]
    assert counts["in_sync"] <= plan.desired


def test_what_a_run_did_not_look_at_is_not_counted() -> None:
    """Verify compares no more than Git declares, and counts no unmanaged quotas."""
    read = Verification(brokers=BROKERS, verified=24)
    verified = replace(PLANNED, plan=None, validated=(), verification=read)
    nothing = replace(PLANNED, plan=None, validated=())
    unknown = dict.fromkeys((status.name.lower() for status in RowStatus), None)

    assert json.loads(as_json(verified))["counts"] == unknown | {
        "in_sync": 24,
        "unsettled": 0,
        "unread": 0,
    }
    assert json.loads(as_json(nothing))["counts"] == unknown


def test_the_verified_rows_of_the_page_add_up() -> None:
    """Beside `412 of 412 quotas in sync`, the page explains why 413 rows were verified."""
    heading = re.search(r'id="brokers">Brokers <span>(.*)</span>', as_html(APPLIED))

    assert "412 of 412 quotas in sync" in summarize(APPLIED).sentence
    assert heading
    assert heading[1] == "413 verified: 412 declared in Git, 1 removed"


def test_a_forgotten_row_is_not_declared_in_git() -> None:
    """Verify expects that no broker stores a quota that is gone, so it is not one of Git's."""
    gone = difference(
        {"user": "dave"}, "producer_byte_rate", (Kind.GONE, Action.FORGET), None, None
    )
    plan = replace(PLAN, differences=(gone,), desired=24, guards=())
    read = Verification(brokers=BROKERS, verified=25)
    report = replace(PLANNED, plan=plan, validated=(), verification=read)

    assert describe_verified(report) == "25 verified: 24 declared in Git, 1 removed"


def test_no_section_of_changes_contradicts_the_validation() -> None:
    """If all changes need attention, no heading says that none would change."""
    row = difference({"user": "alice"}, "producer_byte_rate", (Kind.DRIFTED, Action.SET), 5.0, 7.0)
    plan = replace(PLAN, differences=(row,), desired=24, guards=())
    outcome = Outcome(0, row.entity, (row.key,), Status.ACCEPTED)
    page = as_html(replace(PLANNED, plan=plan, validated=(outcome,)))

    assert "The broker accepts the change" in page
    assert '<h2 id="changes">About the plan</h2>' in page


def test_a_row_that_is_only_reported_says_why() -> None:
    """`drift: report` shows drifted rows, the reason under each, and that nothing changes."""
    row = difference(
        {"user": "alice"}, "producer_byte_rate", (Kind.DRIFTED, Action.REPORT), 5.0, 7.0
    )
    plan = replace(PLAN, differences=(row,), desired=24, guards=())
    lines = plain(plan_screen(replace(PLANNED, plan=plan, validated=()))).splitlines()

    assert lines[0].endswith("0 to change of 24, 23 in sync, 1 only reported, 0 unmanaged")
    assert [" ".join(line.split()) for line in lines[3:]] == [
        "drifted user=alice producer_byte_rate 5 B/s 7 B/s",
        "only reported: cluster.yaml sets drift: report",
        "",
        "No changes.",
    ]
