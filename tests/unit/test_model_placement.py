"""Which brokers share a limit of the whole cluster."""

import pytest

from quota_ops.model.plans.placement import Placement, UnknownBrokersError, list_topics
from quota_ops.model.quotas.rows import DesiredRow

LEADS = {1: ["orders"], 2: ["pay-1", "users"], 3: []}
ROW = DesiredRow("c", "user=a", "producer_byte_rate", 9.0, None, None, "a.yaml", 1)


def test_brokers_share_by_what_they_lead() -> None:
    """Every broker shares a limit, or those that lead a topic by its name or its prefix."""
    placement = Placement.from_json({"3": [], "1": ["orders"], "2": ["users", "pay-1"]})

    assert placement.as_json() == {"1": ["orders"], "2": ["pay-1", "users"], "3": []}
    assert Placement.from_json(placement.as_json()).as_json() == placement.as_json()
    assert placement.find_sharing(None) == (1, 2, 3)
    assert placement.find_sharing("orders") == (1,)
    assert placement.find_sharing("orders,pay-*") == (1, 2)
    assert Placement.of_count(2).find_sharing(None) == (1, 2)
    assert Placement.of_count(2).as_json() == {"1": [], "2": []}
    assert list_topics(["pay-*,orders", None, "orders"]) == ["orders", "pay-*"]


@pytest.mark.parametrize(
    ("placement", "topics", "why"),
    [
        (Placement.from_json(LEADS), "pay", "No topic is pay"),
        (Placement.from_json(LEADS), "orders,x-*", "No topic begins with x-"),
        (Placement.of_count(3), "a,b", "Which brokers lead a, b is unknown"),
        (Placement((), None), None, "The brokers of the cluster are unknown"),
    ],
)
def test_who_shares_a_limit_is_not_guessed(
    placement: Placement, topics: str | None, why: str
) -> None:
    """An unknown topic, and brokers of which nothing is known, are errors."""
    with pytest.raises(UnknownBrokersError, match=f"^{why}$"):
        placement.find_sharing(topics)


@pytest.mark.parametrize("values", [{"a": []}, {"1": [2]}, {"1": "orders"}, {"1": None}])
def test_what_is_no_placement(values: dict[str, object]) -> None:
    """Each broker is a number with a list of topics."""
    with pytest.raises((TypeError, ValueError)):
        Placement.from_json(values)


def test_a_row_that_is_not_divided_yet() -> None:
    """A row needs the brokers for its value, or for the value that follows."""
    assert not ROW.needs_brokers
    assert ROW._replace(whole=9.0).needs_brokers
    assert ROW._replace(whole_after=9.0).needs_brokers
    assert not ROW._replace(whole=9.0, brokers=3).needs_brokers
    assert ROW._replace(whole=9.0, topics="a").declared == (9.0, 9.0, "a")
