"""Why the probe finds no series of a key."""

import pytest

from quota_ops.model.usage.use import KeyProbe, UseProbe
from quota_ops.report.screens.usage import ProbeFacts, explain_key


@pytest.mark.parametrize(
    ("up", "expected"),
    [
        ({}, "wrong matchers: 98 series have other labels"),
        ({"b1": False, "b2": False}, "the last scrape of each broker failed"),
        (
            {"b1": True, "b2": True},
            (
                "no rule exports it, or it has another name: see the rules to copy; 98 series have "
                "other labels than match"
            ),
        ),
    ],
    ids=["nothing is selected", "exporters are down", "no rules"],
)
def test_matchers_that_select_brokers_are_not_wrong(up: dict[str, bool], expected: str) -> None:
    """Series of other clusters are the fault of the matchers only if they select no broker."""
    key = KeyProbe("producer_byte_rate", 0, 0, 98, is_exported=True)
    probe = UseProbe(up, 60, None, [key], {}, 0, 0)

    assert explain_key(key, ProbeFacts(2, {key.key: 3}, None), probe) == expected
