"""The page, parsed without a browser."""

import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.model.code_host import Repository
from quota_ops.model.commit import Provenance
from quota_ops.model.plans.guard import Guard, GuardFinding
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.stages import StageResult, StageStatus
from quota_ops.report.page.report import as_html
from quota_ops.report.page.table import FIRST
from tests.unit.report_reader import Page
from tests.unit.report_sample import APPLIED, FAILED, PLAN, PLANNED, REFUSED, TROUBLED, many_changes

REPORTS = {"planned": PLANNED, "applied": APPLIED, "troubled": TROUBLED, "failed": FAILED}


def test_page_of_a_plan() -> None:
    """The page has the verdict, the bar, what needs attention, the changes and the rest."""
    page = Page(as_html(PLANNED))

    assert page.said("h1", "h2", "li", "summary", "th")[:15] == [
        "1 quota on demo was changed outside Git.",
        "in sync",
        "pending",
        "drifted",
        "unmanaged",
        "Needs attention",
        "kind",
        "entity",
        "key",
        "current",
        "desired",
        "change",
        "since",
        "source",
        "result",
    ]
    assert page.said("summary") == ["Revert, accept or hold", "2 unmanaged"]


def test_page_of_a_refused_plan() -> None:
    """A refusal is shown under its row with its source line, and the run's warnings are shown."""
    page = Page(as_html(REFUSED))

    assert "refused: Not here. (INVALID_REQUEST) [payments.yaml:12]" in page.said("td")
    texts = page.said("p")
    assert "The broker rejects 1 of 4 changes (validate-only, 1 request, 31 ms)." in texts
    first = texts.index(
        "No ledger of this cluster yet: nothing is cleared until a run has been verified."
    )
    assert texts[first:][:2] == [
        "No ledger of this cluster yet: nothing is cleared until a run has been verified.",
        "To begin managing them, write them as YAML, and move the entries that you want:",
    ]


def test_the_page_of_a_dag_run_has_no_command_line_for_guards() -> None:
    """The way out that a page shows exists there: Airflow has an approval, no options."""
    blocked = replace(PLAN, guards=(GuardFinding(Guard.POLICY_CHANGED, "guards changed"),))
    waiting = replace(TROUBLED, plan=blocked, stages=())
    cli, dag = (as_html(replace(waiting, dag_id=dag)) for dag in (None, "drift"))
    refused = [StageResult("apply", StageStatus.REFUSED, None, "admin gave no reason")]
    ended = as_html(replace(waiting, dag_id="drift", stages=tuple(refused)))

    assert "--allow policy_changed --reason TEXT" in cli
    assert "--allow" not in dag
    assert "1 guard blocks this plan. In Airflow, approve the plan." in Page(dag).said("p")
    anew = "1 guard blocks this plan. In Airflow, trigger a new run, and decide there."
    assert anew in Page(ended).said("p")


def test_rows_of_a_page() -> None:
    """Each row has both values, since when, who declared it and where, and the result."""
    html = as_html(APPLIED)

    rows = [Page(row).texts for row in re.findall("<tr data.*?</tr>", html)]

    assert [text for _, text in rows[0]] == [
        "↓",
        "drifted",
        "user=<default>",
        "touches every user; fair share",
        "request_percentage",
        "100 %",
        "25 %",
        "\N{MINUS SIGN}75 %",
        "after 2026-11-14 10:00 UTC",
        "platform",
        "platform.yaml:5",
        "accepted, verified",
    ]


def test_foot_of_a_page() -> None:
    """The footer has the facts that an audit needs."""
    page = Page(as_html(TROUBLED))

    assert dict(zip(page.said("dt"), page.said("dd"), strict=True)) == {
        "plan": "b998bfb33a85b91be3a0fefb6b659723026a2a10d5c7af5deadaf09f1d529936",
        "commit": "a1b2c3d4e5f6",
        "cluster id": "MkU3OEVBNTcwNTJENDM2Qg",
        "ledger": "000007.parquet",
        "run": "2026-11-21T10-15-00Z",
        "times": "2026-11-21T10:15:00Z to 2026-11-21T10:15:04Z",
        "stages": ", ".join(f"{stage.stage} 31 ms" for stage in TROUBLED.stages),
        "versions": "quota-ops 0.1.0, Kafka 4.3.1",
    }


def test_links_to_the_code_host() -> None:
    """Each row links to its line at the commit that declares it; a removed one, at the last."""
    at = replace(PLANNED, repository=Repository.parse("https://github.com/acme/quotas"), path="")

    assert re.findall('<a href="(http.*?)">', as_html(at)) == [
        "https://github.com/acme/quotas/commit/a1b2c3d4e5f6",
        "https://github.com/acme/quotas/blob/a1b2c3d4e5f6/payments.yaml#L12",
        "https://github.com/acme/quotas/blob/a1b2c3d4e5f6/platform.yaml#L5",
        "https://github.com/acme/quotas/blob/9c0ffee1d2/etl.yaml",
        "https://github.com/acme/quotas/blob/a1b2c3d4e5f6/payments.yaml#L8",
    ]
    assert '"https://github.com/acme/quotas/blob/a1b2c3d4e5f6/"' in as_html(at)


@pytest.mark.parametrize(
    "unknown",
    [
        {"provenance": Provenance(uncommitted=("payments.yaml",), base="a1b2c3d4e5f6")},
        {"provenance": Provenance.given("main")},
        {"repository": None},
    ],
)
def test_what_is_not_known_has_no_link(unknown: dict[str, Any]) -> None:
    """Uncommitted files, a commit that is none and a repository without address are plain text."""
    host = Repository.parse("https://github.com/acme/quotas")
    html = as_html(replace(replace(PLANNED, repository=host, path="demo"), **unknown))

    removed = ["https://github.com/acme/quotas/blob/9c0ffee1d2/demo/etl.yaml"]
    assert re.findall('<a href="(http.*?)">', html) == (removed if "provenance" in unknown else [])


def test_a_failed_run_has_a_page() -> None:
    """What failed, why, the remedy and the skipped stages are at the top."""
    page = Page(as_html(FAILED))

    assert page.said("h1", "h2", "li", "p", "b")[2:] == [
        "Unknown.",
        "describe failed, so the state of demo is unknown.",
        "Needs attention",
        "describe failed",
        "connection demo: no broker responds at kafka-1:9094 (timed out after 5 s).",
        "Check bootstrap.servers and the network.",
        "not run",
        "diff, plan, validate, apply, verify",
    ]


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_only_our_own_style_and_script_may_run(report: Report) -> None:
    """The policy contains the hashes of the inline style and script, and nothing is loaded."""
    html = as_html(report)

    inside = re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", html, re.DOTALL)
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in inside]
    assert re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', html) == [
        (
            f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        )
    ]
    assert re.findall(r"""(?:src|href|url|@import)\s*[=(]\s*["']?([^"')\s]+)""", html) == ["data:,"]


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_the_page_can_be_read_aloud(report: Report) -> None:
    """The page has landmarks, one first heading, and column headers in every table."""
    elements = Page(as_html(report)).elements

    assert {name: elements[name,] for name in ("header", "main", "footer", "h1")} == dict.fromkeys(
        ("header", "main", "footer", "h1"), 1
    )
    assert elements["th",] == 0
    assert elements["html", "lang"] == 1


def test_a_long_table_is_data() -> None:
    """A page of many changes opens at once: its rows are in it, and laid out on demand."""
    html = as_html(many_changes(FIRST + 1234))

    assert "1,234 more rows, which report.json lists too" in Page(html).said("span")
    assert Page(html).elements["tr", "data-kind"] == FIRST
    assert html.count("user=user-") == 2 * FIRST + 1234
