"""The screens of the command line, laid out for a pipe."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from quota_ops.cli.run_end import next_command
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Problem
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import About
from quota_ops.report.outline.layout import Row, Span, Table, plain
from quota_ops.report.screens.plan import (
    UNTIL_THEN,
    apply_screen,
    finished_line,
    plan_screen,
    problems_screen,
    verdicts_screen,
    verify_screen,
)
from quota_ops.report.text.report import as_text
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import ABOUT
from quota_ops.store.run.folder import RunFolder
from tests.unit.report_sample import APPLIED, DIFFERENCES, FAILED, PLAN, PLANNED, TROUBLED, answered

SOME_AGREE = "2 of 4 brokers agree; report: report.html"
PLAN_LINES = """\
demo (MkU3OEVBNTcwNTJENDM2Qg) at a1b2c3d      plan b998bfb3      \
4 to change of 413 (3 to set, 1 to clear), 409 in sync, 2 unmanaged

   kind     entity                          key                 current   desired   change   \
source
!  pending  client-id=<default>,user=alice  consumer_byte_rate  none      20 MB/s   new      \
payments.yaml:12  (touches user alice, any other client)
   drifted  user=<default>                  request_percentage  100 %     25 %      -75 %    \
platform.yaml:5  (touches every user)
   removed  client-id=old-etl               consumer_byte_rate  20 MiB/s  none      cleared  \
(was etl.yaml, at 9c0ffee)
   pending  user=alice                      producer_byte_rate  10 MiB/s  15 MiB/s  +50 %    \
payments.yaml:8

The broker accepts all 4 changes (validate-only, 1 request, 31 ms).
default_touched: user=<default> request_percentage would change; a default applies to many clients
1 guard blocks this plan. A run nevertheless restores 1 quota to the last verified value: \
user=<default> request_percentage. 3 other changes wait: client-id=<default>,user=alice \
consumer_byte_rate, client-id=old-etl consumer_byte_rate, user=alice producer_byte_rate. \
Override it with --allow default_touched --reason TEXT \
(in Airflow or CI, approve the plan).
"""


def test_plan() -> None:
    """A plan lists the riskiest rows first, marks blocked ones, and shows what to do."""
    assert plain(plan_screen(PLANNED)) == PLAN_LINES


def test_a_long_plan_says_how_much_it_leaves_out() -> None:
    """A plan that lists only some rows ends the list with the number of the others."""
    lines = plain(plan_screen(PLANNED, most=1)).splitlines()

    assert next(line for line in lines if "user=" in line).startswith("!  pending")
    assert "… and 3 more" in lines


def test_a_plan_with_nothing_to_do_says_so() -> None:
    """A plan without changes shows a sentence instead of an empty table."""
    nothing = replace(PLANNED, plan=replace(PLAN, differences=(), ledger=None), validated=())

    assert plain(plan_screen(nothing)).splitlines()[1:] == [
        "",
        "No changes.",
        "No ledger of this cluster yet: nothing is cleared until a run has been verified.",
    ]


def test_a_run_without_a_plan_has_no_plan_screen() -> None:
    """A run that failed before it had a plan shows no plan."""
    assert plain(plan_screen(FAILED)) == ""


def test_refusals_stand_under_their_rows() -> None:
    """A refusal has the broker's text and the line that declares the value."""
    assert (
        plain(apply_screen(TROUBLED, most=9)).splitlines()[0]
        == "applied: 2 accepted, 1 refused, 1 unknown"
    )
    assert [line.strip() for line in plain(apply_screen(TROUBLED, most=9)).splitlines()[3::2]] == [
        "unknown: no response recorded [payments.yaml:12]",
        "refused: Quotas of etl are frozen. (POLICY_VIOLATION) [etl.yaml]",
        "broker 3 stores 10 MiB/s [payments.yaml:8]",
    ]


def test_verify_names_each_broker() -> None:
    """A lagging or unreachable broker is named with its error."""
    assert plain(verify_screen(TROUBLED)).splitlines() == [
        "broker 1 agrees",
        "broker 2 agrees",
        "broker 3 differs in 1 key (queried 6 times)",
        "broker 4 at kafka-4:9094 does not respond (queried 6 times): timed out",
    ]


def test_verify_names_each_row_that_is_not_as_git_says() -> None:
    """Without a plan and a report too: the row, the desired value, and what each broker stores."""
    alone = replace(TROUBLED, plan=None, applied=(), validated=())

    assert plain(verdicts_screen(alone, most=1)).splitlines() == [
        "user=alice  producer_byte_rate  desired 15 MiB/s: broker 3 stores 10 MiB/s"
    ]
    assert plain(verdicts_screen(alone, most=0)) == "… and 1 more\n"


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (
            APPLIED,
            "applied 4 keys on 4 entities in 248 ms; 3 of 3 brokers agree; report: report.html",
        ),
        (
            TROUBLED,
            f"applied 2 keys on 2 entities in 248 ms; unknown: 1 key on 1 entity; {SOME_AGREE}",
        ),
        (
            replace(TROUBLED, applied=TROUBLED.applied[-1:]),
            f"no changes confirmed in 248 ms; unknown: 1 key on 1 entity; {SOME_AGREE}",
        ),
        (PLANNED, "no changes written in 248 ms; report: report.html"),
    ],
)
def test_last_line(report: Report, words: str) -> None:
    """A run ends with its result and where to read more."""
    assert plain((finished_line(report, "report.html"),)) == f"{words}\n"


def test_a_run_that_only_lacks_its_report_has_no_next_command(tmp_path: Path) -> None:
    """A full store keeps the report from being written: there is nothing left to reconcile."""
    folder = RunFolder(open_place(tmp_path / "demo" / "one"))
    folder.write(ABOUT, About("one", "demo", APPLIED.started))
    unwritten = replace(APPLIED, applied=answered(Status.NOT_SENT, *DIFFERENCES[:4]))

    def has_next(report: Report) -> bool:
        return plain(next_command("reconcile", folder, report)).startswith("next: quota-ops")

    assert [*map(has_next, (APPLIED, unwritten, PLANNED))] == [False, True, True]


def test_problems() -> None:
    """Every problem has its place, its underlined line, and its remedy."""
    error = InvalidDesiredState(
        [
            Problem("b.yaml", 31, 5, "user=indexer is already described.", "Keep one."),
            Problem(
                "a.yaml",
                14,
                14,
                "producer_byterate is not a quota key.",
                "Did you mean producer_byte_rate?",
                "    limits: {producer_byterate: 10 MiB}",
                17,
            ),
        ],
        files=5,
        quotas=412,
    )

    assert plain(problems_screen(error)) == (
        "a.yaml:14:14  producer_byterate is not a quota key. Did you mean producer_byte_rate?\n"
        "    14 |     limits: {producer_byterate: 10 MiB}\n"
        "                      ^^^^^^^^^^^^^^^^^\n"
        "b.yaml:31:5  user=indexer is already described. Keep one.\n"
        "2 problems in 2 of 5 files (412 quotas read)\n"
        f"{UNTIL_THEN}\n"
    )


@pytest.mark.parametrize(
    ("excerpt", "column", "length", "shown", "under"),
    [
        ("owner:\tx", 7, 1, "owner:\\tx", "      ^^"),
        ("日本: x", 5, 1, "日本: x", "      ^"),
        ("a: \x1b[2J", 4, 4, "a: \\u001b[2J", "   ^^^^^^^^^"),
        ("a:", 3, 1, "a:", "  ^"),
        ("x" * 500, 400, 3, "…" + "x" * 150 + "…", " " * 61 + "^^^"),
    ],
)
def test_underline(excerpt: str, column: int, length: int, shown: str, under: str) -> None:
    """The mark is under the place as shown: wide, escaped, or cut out of a long line."""
    problem = Problem("a.yaml", 7, column, "Wrong.", None, excerpt, length)
    error = InvalidDesiredState([problem], files=1, quotas=0)

    lines = plain(problems_screen(error)).splitlines()

    assert lines[1:3] == [f"     7 | {shown}", f"         {under}"]


def test_columns_line_up_with_wide_names() -> None:
    """Chinese and combining characters take the width that a terminal gives them."""
    cells = [("日本", "1"), ("q\u0301", "2"), ("plain", "3"), ("x" * 70, "4")]
    table = Table(("name", "n"), tuple(Row(tuple(map(Span, row))) for row in cells))

    assert plain((table,)).splitlines() == [
        "name" + " " * 58 + "n",
        "日本" + " " * 58 + "1",
        "q\u0301" + " " * 61 + "2",
        "plain" + " " * 57 + "3",
        "x" * 70 + "  4",
    ]


def test_report_as_text() -> None:
    """The text report shows everything in reading order, and every failure."""
    lines = as_text(TROUBLED).splitlines()

    assert [line for line in lines if not line.startswith((" ", "!"))] == [
        (
            "3 quotas on demo are not confirmed; 1 differs, 1 refused, 1 unknown; apply was "
            "incomplete; 1 change made by this run; 410 of 412 quotas in sync; 2 of 4 brokers "
            "agree; 2 unmanaged."
        ),
        (
            "demo (MkU3OEVBNTcwNTJENDM2Qg) at a1b2c3d, plan b998bfb3, run 2026-11-21T10-15-00Z, "
            "2026-11-21 10:15 UTC"
        ),
        "apply incomplete: no reason was given",
        "verify failed: no reason was given",
        "",
        "Needs attention (3)",
        "",
        "Changed (1)",
        "",
        "Brokers",
        "broker 1 agrees",
        "broker 2 agrees",
        "broker 3 differs in 1 key (queried 6 times)",
        "broker 4 at kafka-4:9094 does not respond (queried 6 times): timed out",
        "",
        "Everything else (2)",
    ]


def test_a_failed_run_as_text() -> None:
    """A run that did not reach the cluster shows why, what to do, and the skipped stages."""
    assert as_text(FAILED) == (
        "describe failed, so the state of demo is unknown.\n"
        "demo (unknown cluster id) at a1b2c3d, run 2026-11-21T10-15-00Z, 2026-11-21 10:15 UTC\n"
        "describe failed: connection demo: no broker responds at kafka-1:9094 (timed out after 5 "
        "s).\n"
        "  Check bootstrap.servers and the network.\n"
        "not run: diff, plan, validate, apply, verify\n"
    )


def test_long_lists_of_refusals_are_told_by_their_ends() -> None:
    """A message of a thousand lines does not bury the report, and is marked as shortened."""
    message = "\n".join(["the broker rejects 999:", *(f"  {at}" for at in range(999)), "Fix them."])
    stages = (replace(PLANNED.stages[0], status=FAILED.stages[1].status, message=message),)

    lines = as_text(replace(FAILED, stages=stages)).splitlines()[2:]

    assert lines == [
        "check failed: the broker rejects 999:",
        *(f"  {at}" for at in range(5)),
        "  … 994 more lines",
        "  Fix them.",
    ]
