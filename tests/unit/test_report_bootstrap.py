"""Verification by the bootstrap address alone: the texts never claim that more was read."""

import pytest
from msgspec.structs import replace

from quota_ops.model.runs.verification import BOOTSTRAP, BrokerResult, RowVerdict, Verdict
from quota_ops.report.outline.brokers import describe_broker, describe_brokers
from quota_ops.report.outline.cells import result
from quota_ops.report.outline.layout import plain
from quota_ops.report.outline.row_status import report_rows
from quota_ops.report.outline.summary import summarize
from quota_ops.report.page.report import as_html
from quota_ops.report.screens.plan import finished_line, verified_line
from tests.unit.report_sample import APPLIED

AGREES = BrokerResult(2, "link:9092", 3, 0, bootstrap=True)
SILENT = BrokerResult(BOOTSTRAP, "link:9092", 3, None, "timed out", bootstrap=True)


@pytest.mark.parametrize(
    ("said", "one", "whole"),
    [
        (
            AGREES,
            "the bootstrap address link:9092 (broker 2) agrees",
            "the bootstrap address agrees (broker 2 responded, no other was queried)",
        ),
        (
            replace(AGREES, broker=BOOTSTRAP),
            "the bootstrap address link:9092 agrees",
            "the bootstrap address agrees (not each broker was queried)",
        ),
        (
            replace(AGREES, lagging=4),
            "the bootstrap address link:9092 (broker 2) differs in 4 keys (queried 3 times)",
            "the bootstrap address does not agree (broker 2 responded, no other was queried)",
        ),
        (
            SILENT,
            "the bootstrap address link:9092 does not respond (queried 3 times): timed out",
            "the bootstrap address does not agree",
        ),
    ],
)
def test_words_of_the_bootstrap_address(said: BrokerResult, one: str, whole: str) -> None:
    """No text makes a claim about a broker that was not queried."""
    assert (describe_broker(said), describe_brokers((said,))) == (one, whole)


def test_a_report_of_one_address() -> None:
    """The last line, the verdict and the page state that no other broker was queried."""
    report = replace(APPLIED, verification=replace(APPLIED.verification, brokers=(AGREES,)))
    words = "the bootstrap address agrees (broker 2 responded, no other was queried)"

    assert f"; {words}; report: here" in plain([finished_line(report, "here")])
    assert words in summarize(report).sentence
    assert plain([verified_line(report)]).endswith(" verified at the bootstrap address: stored.\n")
    assert "<td>2, at the bootstrap address</td>" in as_html(report)
    unknown = replace(
        report,
        verification=replace(report.verification, brokers=(replace(AGREES, broker=BOOTSTRAP),)),
    )
    assert "<td>at the bootstrap address</td>" in as_html(unknown)


def test_an_address_that_is_silent() -> None:
    """If the bootstrap address does not respond, the sentence names it instead of a broker."""
    report = replace(APPLIED, verification=replace(APPLIED.verification, brokers=(SILENT,)))

    assert (
        "the bootstrap address did not respond, so it is unknown whether demo matches Git"
        in summarize(report).sentence
    )


def test_what_an_unknown_broker_holds_instead() -> None:
    """A row names the address if the broker behind it is unknown."""
    row = report_rows(APPLIED)[0]
    seen = RowVerdict("user=a", "request_percentage", 2.0, Verdict.DIFFERS, ((BOOTSTRAP, 1.0),))

    assert (
        result(replace(row, verdict=seen), APPLIED.verification.brokers)
        == "the bootstrap address stores 1 %"
    )
