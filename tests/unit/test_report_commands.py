"""The ways out of drift: when it is reverted, what keeps a run from it, and the command."""

from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.commit import Provenance
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.plans.policy import ApprovalPolicy
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.runs.outcome import Status
from quota_ops.report.outline.commands import explain_revert, format_accept_options, format_revert
from quota_ops.report.outline.row_status import report_rows
from tests.unit.report_sample import PLAN, answered
from tests.unit.test_report_past import DELETED, RAISED, report_of

UNTIL = "the next run changes nothing until"
APPROVES = ", or approves the plan in Airflow or CI"


@pytest.mark.parametrize(
    ("schedule", "when"),
    [
        ("*/30 * * * *", ": not before 2026-11-21 10:30 UTC, by its schedule (*/30 * * * *)"),
        ("@daily", ": not before 2026-11-22 00:00 UTC, by its schedule (@daily)"),
        ("0 0 29 2 1#6", ", by its schedule (0 0 29 2 1#6)"),
        (None, ", when somebody or a job starts it: cluster.yaml sets no schedule"),
    ],
)
def test_when_drift_is_reverted(schedule: str | None, when: str) -> None:
    """Revert names the next time after the report at which the schedule starts a run."""
    report = report_of()
    plan = replace(PLAN, policy=replace(PLAN.policy, schedule=schedule))
    report = replace(report, plan=replace(plan, differences=(RAISED,)))

    assert explain_revert(report_rows(report)[0], report) == f"The next reconcile reverts it{when}."


@pytest.mark.parametrize(
    ("plan", "more", "words", "command"),
    [
        (
            {"guards": (GuardFinding("removals", "x"), GuardFinding("cut", "y"))},
            {},
            f"2 guards block the whole plan: {UNTIL} somebody overrides them{APPROVES}.",
            "quota-ops reconcile demo --allow removals --allow cut --reason TEXT",
        ),
        (
            {
                "guards": (GuardFinding("cut", "y", allowed="of this run alone"),),
                "policy": replace(PLAN.policy, approval=ApprovalPolicy.NEVER),
            },
            {},
            f"1 guard blocks the whole plan: {UNTIL} somebody overrides it.",
            "quota-ops reconcile demo --allow cut --reason TEXT",
        ),
        (
            {"policy": replace(PLAN.policy, approval=ApprovalPolicy.ALWAYS)},
            {},
            f"cluster.yaml sets approval: always: {UNTIL} its plan is approved.",
            "quota-ops reconcile demo",
        ),
        (
            {},
            {"validated": answered(Status.REFUSED, DELETED)},
            "No run changes anything while the broker rejects a change of the plan.",
            "",
        ),
        (
            {},
            {"provenance": Provenance(failure="git log failed")},
            "No run changes anything until this is fixed: git log failed.",
            "",
        ),
    ],
    ids=["guards", "guards without approval", "approval", "rejected", "commit unknown"],
)
def test_what_keeps_a_run_from_reverting(
    plan: dict[str, Any], more: dict[str, Any], words: str, command: str
) -> None:
    """What blocks a plan blocks all its rows: each names it, and the command that works."""
    report = report_of()
    assert report.plan
    report = replace(report, plan=replace(report.plan, **plan), **more)
    raised = next(row for row in report_rows(report) if row.difference is RAISED)

    assert explain_revert(raised, report) == words
    assert format_revert(raised, report) == command


def test_the_command_that_reverts_a_row() -> None:
    """A reconcile reverts drift; what runs only report, an alter reverts; and nothing else does.

    In Airflow a person triggers the DAG instead.
    """
    reported = RAISED._replace(action=Action.REPORT)
    unmanaged = DELETED._replace(before=5.0, after=None, kind=Kind.CHANGED_SINCE)
    rows = (
        RAISED,
        reported,
        unmanaged._replace(action=Action.REPORT),
        reported._replace(hands_off="protected"),
        reported._replace(before=1.0, after=100.0),
        reported._replace(before=1.0, after=2.0**63),
    )
    report = report_of()
    assert report.plan
    plan = replace(report.plan, differences=rows, guards=())

    found = [format_revert(row, report) for row in report_rows(replace(report, plan=plan))]

    alice = "quota-ops alter demo --names user=alice"
    assert sorted(found) == [
        "",
        f"{alice} --add 'producer_byte_rate=10 MiB' --reason TEXT",
        f"{alice} --add producer_byte_rate=100 --allow raise --reason TEXT",
        f"{alice} --add producer_byte_rate=unlimited --allow unlimited --reason TEXT",
        "quota-ops alter demo --names user=bob --delete producer_byte_rate --reason TEXT",
        "quota-ops reconcile demo",
    ]
    stopped = replace(plan, standstill="paused: a move")
    assert format_revert(report_rows(report)[0], replace(report, plan=stopped)) == ""
    of_dag = replace(report, plan=plan, dag_id="drift")
    assert "quota-ops reconcile demo" not in {
        format_revert(row, of_dag) for row in report_rows(of_dag)
    }


def test_a_value_that_yaml_cannot_declare_is_not_accepted() -> None:
    """No command is printed that would leave the value out."""
    report = report_of()
    row = report_rows(report)[0]
    assert row.difference.before is not None
    nan = replace(row, difference=row.difference._replace(before=float("nan")))

    assert format_accept_options(row, report) == " --key producer_byte_rate"
    assert format_accept_options(nan, report) == ""
