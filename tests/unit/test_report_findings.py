"""Every output shows findings; only those for programs show silenced ones."""

import html
import json
import re
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from quota_ops.model.finding import Finding, Location
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.findings import FEW, MOST
from quota_ops.report.outline.layout import plain
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.screens.plan import plan_screen
from quota_ops.report.text.report import as_text
from tests.unit.report_sample import PLANNED

SHADOWED = Finding(
    "QO105",
    "client-id=<default>",
    "producer_byte_rate",
    "producer_byte_rate of client-id=<default> never holds: `user=<default>` comes first.",
    "Remove it.",
    Location("platform.yaml", 19),
)
STARVING = SHADOWED._replace(code="QO107", place=Location("platform.yaml", 19, 7), message="10 B/s")
OURSELVES = Finding("QO203", "user=<default>", "request_percentage", "It is 5 %.", "Give it more.")
SILENCED = SHADOWED._replace(code="QO104", message="in MB", silenced="so it is")
SOME = replace(PLANNED, findings=(OURSELVES, SILENCED, STARVING, SHADOWED))


def plan_text(report: Report) -> str:
    """Return the output of `plan` in a pipe."""
    return plain(plan_screen(report))


def page_text(report: Report) -> str:
    """Return the text of the page."""
    return html.unescape(re.sub("<[^>]+>", " ", as_html(report)))


PEOPLE = (plan_text, as_text, page_text)


@pytest.mark.parametrize("output", PEOPLE)
def test_every_output_tells_what_nobody_silenced(output: Callable[[Report], str]) -> None:
    """Code, place, text and remedy of each, those in files first; silenced ones are not shown."""
    said = " ".join(output(SOME).replace("`", "").split())

    for finding in (SHADOWED, STARVING, OURSELVES):
        for part in (finding.code, finding.where, finding.message.replace("`", ""), finding.remedy):
            assert part in said
    assert said.index(SHADOWED.code) < said.index(OURSELVES.code)
    assert "QO104" not in output(SOME)
    assert "inding" not in output(PLANNED)


def test_the_text_report_has_a_section() -> None:
    """Findings have a heading of their own with their count."""
    assert (
        "\nFindings (3)\n"
        "platform.yaml:19  QO105 warning  producer_byte_rate of client-id=<default> never holds: "
        "`user=<default>` comes first. Remove it.\n"
        "platform.yaml:19:7  QO107 warning  10 B/s Remove it.\n"
        "user=<default>  QO203 warning  It is 5 %. Give it more.\n"
        "quota-ops findings CODE explains a code, and how to silence it.\n"
    ) in as_text(SOME)


def test_programs_are_told_all() -> None:
    """JSON has every finding, and the reason of each silence."""
    told = json.loads(as_json(SOME))["findings"]

    assert [(one["code"], one["severity"], one["silenced"]) for one in told] == [
        ("QO203", "warning", None),
        ("QO104", "notice", "so it is"),
        ("QO107", "warning", None),
        ("QO105", "warning", None),
    ]
    assert [(one["file"], one["line"], one["column"]) for one in told[1:]] == [
        ("platform.yaml", 19, None),
        ("platform.yaml", 19, 7),
        ("platform.yaml", 19, None),
    ]


@pytest.mark.parametrize(("output", "most"), [(plan_text, FEW), (as_text, MOST), (page_text, MOST)])
def test_many_findings_are_counted(output: Callable[[Report], str], most: int) -> None:
    """An output lists as many as a person reads, with the number of the others."""
    many = replace(PLANNED, findings=(SHADOWED,) * (most + 12))

    said = output(many)

    assert said.count("never holds") == most
    assert "… and 12 more findings in the JSON output" in said
