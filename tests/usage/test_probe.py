"""Why the probe finds no series of a key."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from quota_ops.model.usage.use import KeyProbe, UseProbe
from quota_ops.report.screens.usage_probe import ProbeFacts, explain_key
from quota_ops.usage.probe import probe_usage
from quota_ops.usage.source import UsageSource
from tests.usage.conftest import POLICY, connect
from tests.usage.recording import Answer, Question, serve


@pytest.mark.parametrize(
    ("up", "expected"),
    [
        ({}, "wrong matchers: 98 series have other labels"),
        ({"b1": False, "b2": False}, "the last scrape of each broker failed"),
        (
            {"b1": True, "b2": True},
            (
                "no client used it since its first quota was stored, or no rule exports it, or it "
                "has another name: see the rules to copy; 98 series have other labels than match"
            ),
        ),
    ],
    ids=["nothing is selected", "exporters are down", "no rules"],
)
def test_matchers_that_select_brokers_are_not_wrong(up: dict[str, bool], expected: str) -> None:
    """Series of other clusters are the fault of the matchers only if they select no broker."""
    key = KeyProbe("producer_byte_rate", 0, 0, 0, 98, is_exported=True)
    probe = UseProbe(up, 60, None, [key], {}, 0, 0, {})

    assert explain_key(key, ProbeFacts((), {key.key: 3}, None), probe) == expected


def test_without_a_run_the_rules_are_not_to_blame() -> None:
    """As long as no run has read the quotas, brokers may measure nothing because there are none."""
    key = KeyProbe("producer_byte_rate", 0, 0, 0, 0, is_exported=True)
    probe = UseProbe({"b1": True}, 60, None, [key], {}, 0, 0, {})

    assert explain_key(key, ProbeFacts(None, None, None), probe) == (
        "no quota of this key is stored (quota-ops plan reads them), or no rule exports it, or it "
        "has another name: see the rules to copy"
    )


def test_the_oldest_scrape_is_of_the_day_that_a_midnight_ends() -> None:
    """The oldest sample is looked for at midnights, and belongs to the day before."""
    midnight = datetime(2026, 11, 18, tzinfo=UTC).timestamp()

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        result = [{"metric": {}, "value": [midnight, str(midnight)]}]
        found = result if asked.query.startswith("min(min_over_time(timestamp(") else []
        return Answer(200, json.dumps({"status": "success", "data": {"result": found}}))

    with serve(respond) as url:
        found = probe_usage(UsageSource.of(POLICY, connect(url)), datetime.now(UTC))

    assert f"{found.oldest:%Y-%m-%d}" == "2026-11-17"
