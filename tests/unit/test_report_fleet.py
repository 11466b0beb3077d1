"""The overview of many clusters."""

import re

from msgspec.structs import replace

from quota_ops.model.history.history import FleetHistory
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.report.page import fleet as fleet_page
from quota_ops.report.screens import fleet
from tests.unit.fleet_sample import FLEET, HISTORY, make_day
from tests.unit.report_reader import Page
from tests.unit.report_sample import PLAN, PLANNED, difference


def test_sentence() -> None:
    """One sentence counts the clusters by their status, the worst first."""
    said = [fleet.as_text(one).splitlines()[0] for one in (FLEET, ())]
    assert said == [
        "5 clusters: 2 are unknown, 2 need attention, 1 is in sync.",
        "0 clusters: nothing to compare.",
    ]


def test_text() -> None:
    """Every cluster has a line, an unreachable one its reason, and drifted rows follow."""
    lines = fleet.as_text(FLEET).splitlines()

    assert [re.sub(" {2,}", "  ", line) for line in lines[2:9]] == [
        (
            "cluster  status  in sync  pending  overriding  drifted  held  not confirmed  "
            "unmanaged  why"
        ),
        "lab  Unknown  describe failed, so the state of lab is unknown",
        "staging  Unknown  no broker responds at kafka-1:9094",
        "demo  Needs attention  409  3  0  1  0  0  2  1 quota on demo was changed outside Git",
        "prod-us  Needs attention  409  0  0  0  0  3  2  3 quotas on prod-us are not confirmed",
        "prod-eu  In sync  409  0  0  0  0  0  2  prod-eu matches Git",
        "",
    ]
    assert [line for line in lines if "needs attention" in line] == [
        "demo: needs attention (2)",
        "prod-us: needs attention (3)",
    ]


def test_page() -> None:
    """Every cluster has a row, those that could not be read first, and a link to its report."""
    page = Page(fleet_page.as_html(FLEET, {"demo": "demo/report.html"}, HISTORY))

    assert page.said("h1", "h2") == [
        "5 clusters: 2 are unknown, 2 need attention, 1 is in sync.",
        "All quotas",
        "Drift most often",
    ]
    assert "runs refused: at validate, apply or verify, in" in page.said("small")[-1]
    assert page.elements["tr",] == 1 + len(FLEET) + 1 + 4 + 1 + 2


def test_a_day_without_a_run_changes_no_total() -> None:
    """A cluster that no run compared on a day counts as it was when one last did.

    One that is not in Git any more does not: it may have another name now.
    """
    days = [make_day(name, 3, ago) for name, ago in (("demo", 5), ("old", 9), ("prod-eu", 0))]
    days.append(make_day("prod-eu", 2, 1))
    page = fleet_page.as_html(FLEET[:2], None, FleetHistory(days))

    shown = re.findall('aria-label="(Quotas [^"]*)"', page)
    assert shown == [
        "Quotas in sync: 99.6 % on 2026-11-21, between 98.8 % and 99.6 % on 3 days",
        "Quotas drifted: 1 on 2026-11-21, between 1 and 14 on 3 days",
    ]


def test_page_of_unknown_clusters() -> None:
    """The page has its own time, when a cluster was last compared, and no empty section."""
    unknown = (("demo", "check failed: q.yaml:4:4 This is not valid YAML"), ("lab", "no broker"))
    history = FleetHistory(looks={"demo": "2026-11-20T16:45:00Z"})
    html = fleet_page.as_html(unknown, None, history, "2026-11-21T08:30:00Z")
    page = Page(html)

    assert page.said("h1", "h2") == ["2 clusters: 2 are unknown."]
    assert "2026-11-21 08:30 UTC" in page.said("p")[0]
    assert html.count("2026-11-20 16:45 UTC") == 1


def test_every_row_that_needs_a_person_is_counted() -> None:
    """A status without a column is in the words below the cluster's name."""
    row = difference(
        {"user": "bob"}, "producer_byte_rate", (Kind.RETURNED, Action.CLEAR), 5.0, None
    )
    plan = replace(PLAN, differences=(*PLAN.differences, row))
    page = Page(fleet_page.as_html((("demo", replace(PLANNED, plan=plan)),)))

    (words,) = [one for one in page.said("small") if "outside Git" in one]
    assert words == "1 quota on demo was changed outside Git; 1 returned"
