"""The overview of many clusters."""

from quota_ops.report import fleet
from tests.unit.report_reader import Page
from tests.unit.report_sample import APPLIED, FAILED, PLANNED, TROUBLED

FLEET = (
    ("prod-eu", APPLIED),
    ("demo", PLANNED),
    ("prod-us", TROUBLED),
    ("staging", "no broker responds\n  at kafka-1:9094"),
    ("lab", FAILED),
)


def test_sentence() -> None:
    """One sentence counts the clusters by their status, the worst first."""
    said = [fleet.as_text(one).splitlines()[0] for one in (FLEET, ())]
    assert said == [
        "5 clusters: 2 need attention, 2 are unknown, 1 is in sync.",
        "0 clusters: nothing to compare.",
    ]


def test_text() -> None:
    """Every cluster has a line, an unreachable one its reason, and drifted rows follow."""
    lines = fleet.as_text(FLEET).splitlines()

    assert lines[2:9] == [
        "cluster  status           in sync  pending  drifted  held  not confirmed  unmanaged  why",
        (
            "demo     Needs attention  409      3        1        0     0              2          "
            "1 quota on demo was changed outside Git"
        ),
        (
            "prod-us  Needs attention  409      0        0        0     3              2          "
            "3 quotas on prod-us are not confirmed"
        ),
        (
            "lab      Unknown                                                                     "
            "describe failed, so the state of lab is unknown"
        ),
        (
            "staging  Unknown                                                                     "
            "no broker responds at kafka-1:9094"
        ),
        (
            "prod-eu  In sync          409      0        0        0     0              2          "
            "prod-eu matches Git"
        ),
        "",
    ]
    assert [line for line in lines if "needs attention" in line] == [
        "demo: needs attention (2)",
        "prod-us: needs attention (3)",
    ]


def test_markdown() -> None:
    """The overview can be pasted: one table, with foreign text in code spans."""
    assert fleet.as_markdown(FLEET).splitlines()[::3] == [
        "**quota-ops · 5 clusters: 2 need attention, 2 are unknown, 1 is in sync.**",
        "|-|-|-|-|-|-|-|-|-|",
        "| `lab` | Unknown |  |  |  |  |  |  | `describe failed, so the state of lab is unknown` |",
    ]


def test_page() -> None:
    """Every cluster has its section, the worst first."""
    page = Page(fleet.as_html(FLEET))

    assert page.said("h1", "h2") == [
        "5 clusters: 2 need attention, 2 are unknown, 1 is in sync.",
        "demo",
        "prod-us",
        "lab",
        "staging",
        "prod-eu",
    ]
    assert page.elements["tr", "data-kind"] == 5
