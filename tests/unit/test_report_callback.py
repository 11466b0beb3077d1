"""Every output warns of a class that decides limits instead of Kafka."""

import html
import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.layout import plain
from quota_ops.report.outline.sentences import describe_callback
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.screens.plan import plan_screen
from quota_ops.report.text.report import as_text
from tests.unit.report_sample import PLANNED

WORDS = (
    "client.quota.callback.class is com.example.Grouped on broker 1, 3: it decides instead of "
    "Kafka, and may ignore the stored quotas of users and client ids."
)


def facts(*classes: str | None) -> ClusterFacts:
    """Return the facts of a cluster whose brokers have these classes."""
    brokers = (
        BrokerFacts(at, "b:1", "4.3", client_class)
        for at, client_class in enumerate(classes, start=1)
    )
    return ClusterFacts(tuple(brokers), "User:ANONYMOUS")


SOME = facts("com.example.Grouped", "", "com.example.Grouped", None)


def plan_text(report: Report) -> str:
    """Return the output of `plan` in a pipe."""
    return plain(plan_screen(report))


def page_text(report: Report) -> str:
    """Return the page as text, with its entities resolved."""
    return html.unescape(as_html(report))


def json_text(report: Report) -> str:
    """Return the warnings of report.json, one per line."""
    return "\n".join(json.loads(as_json(report))["warnings"])


OUTPUTS = (plan_text, as_text, page_text, json_text)


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_warns_of_a_callback_class(output: Callable[[Report], str]) -> None:
    """Every output names a callback class and its brokers; without one there is no warning."""
    assert WORDS in output(replace(PLANNED, facts=SOME))
    for none in (None, facts("", None)):
        assert "callback" not in output(replace(PLANNED, facts=none))


def test_brokers_may_differ() -> None:
    """Different classes are all named; if every broker has one, the brokers are not listed."""
    assert describe_callback(facts("b.B", "a.A")).startswith(
        "client.quota.callback.class is a.A and b.B on every broker: "
    )


def test_a_class_has_any_name() -> None:
    """The name of a callback class is never markup in a page."""
    page = as_html(replace(PLANNED, facts=facts("<script>`@all`")))

    assert "<script>`@all`" not in page.replace("`` <script>`@all` ``", "")
