"""Metrics in cluster.yaml, and what belongs to which quota."""

from datetime import UTC, datetime

import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.clusters.scraped_brokers import match_brokers
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.seen import count_each, count_together, join_seen
from quota_ops.model.usage.series import Time, time_of
from quota_ops.model.usage.usage import Metric
from quota_ops.model.usage.use import (
    QuotaUse,
    SeriesShare,
    UseVerdict,
    explain_others,
    explain_step,
    find_stretch,
)
from quota_ops.precedence.resolution import find_quota


def test_a_metric_is_a_name_with_labels() -> None:
    """A metric in cluster.yaml selects series; it is never another expression."""
    assert Metric.parse(' used{resource="Produce",a = "x\\"y" } ') == Metric(
        "used", (("resource", "Produce"), ("a", 'x"y'))
    )


@pytest.mark.parametrize(
    "text", ["rate(used[5m])", 'used{a=~"x"}', "used or secret", 'used{a="x"', "1a", 'used{a="x"}#']
)
def test_another_expression_is_refused(text: str) -> None:
    """Anything but a name with labels is refused."""
    with pytest.raises(ValueError, match=r"is not the name|has a matcher"):
        Metric.parse(text)


STORED = [
    Entity.of(parts)
    for parts in (
        {"user": "alice"},
        {"user": None},
        {"user": "alice", "client-id": None},
        {"user": None, "client-id": "web"},
        {"client-id": "web"},
    )
]


@pytest.mark.parametrize(
    ("user", "client_id", "expected"),
    [
        ("alice", None, "user=alice"),
        ("bob", None, "user=<default>"),
        ("alice", "web", "client-id=<default>,user=alice"),
        ("bob", "web", "client-id=web,user=<default>"),
        ("bob", "app", None),
        (None, "web", "client-id=web"),
        (None, "app", None),
    ],
)
def test_a_series_belongs_to_the_first_quota_of_its_labels(
    user: str | None, client_id: str | None, expected: str | None
) -> None:
    """A series belongs to the first level that has a quota with its labels."""
    found = find_quota(STORED, user, client_id)
    assert (None if found is None else found.text) == expected


def test_a_time_is_seen_while_all_registered_brokers_are() -> None:
    """If a broker was not scraped, or may be none of those that were, nothing is seen of all."""
    a, b, c = (BrokerFacts(number, f"{name}.kafka:9092") for number, name in enumerate("abc"))
    seen = {"a": [(0, 60), (120, 300)], "b": [(30, 180), (240, 300)]}

    found = [count_together(seen, brokers) for brokers in ((a, b), None, (a, b, c), (a, c), (a,))]

    assert found == [150, 150, 0, 0, 240]
    assert count_together({}, None) == 0
    assert count_each(join_seen([seen, {"b": [(300, 360)]}, seen])) == {"a": 240, "b": 270}


def test_the_busiest_client_of_a_quota_is_the_first() -> None:
    """A quota without use has no busiest client."""
    share = SeriesShare(
        "a", None, "b", 1, 2, 3, 0.5, 4, 0, 0, throttled=False, counted=60, with_limit=60
    )
    quota = QuotaUse(STORED[0], "producer_byte_rate", 4, None, UseVerdict.USED, None, (share,))
    assert (quota.busiest, quota._replace(clients=()).busiest) == (share, None)


def test_a_step_shorter_than_the_scrapes_is_explained() -> None:
    """Scrapes may be a fifth late; more means that a part of the time does not count as seen."""
    assert [find_stretch(interval, 60) for interval in (15, 60, 72, 120)] == [1, 1, 1, 2]
    assert explain_step(120, 60) == (
        "Scraped every 120 s, but step is 60 s, so at most 50 % of the time counts as seen: set "
        "step: 120s."
    )


def test_more_brokers_than_are_registered_are_explained() -> None:
    """Matchers that select another cluster are the likely reason."""
    assert explain_others(4, 2) == (
        "4 brokers were scraped and 2 registered: match may select another cluster, whose use is "
        "counted here, or a broker got another value of the label that `broker` under `usage` "
        "names."
    )


@pytest.mark.parametrize(
    ("labels", "hosts", "expected"),
    [
        (["b1:9404", "b2:9404"], ["b1", "b2"], ([], [])),
        (["b1", "b2"], ["b1.kafka.svc", "b2.kafka.svc"], ([], [])),
        (["0", "1"], ["b1", "b2"], ([], [])),
        (["b1:9404", "b9:9404"], ["b1", "b2"], (["b2:9092"], ["b9:9404"])),
        (["b1:9404"], ["b1", "b2"], (["b2:9092"], [])),
        (["10.0.0.1:9404", "10.0.0.2:9404"], ["10.0.0.1", "10.0.0.2"], ([], [])),
        (["10.0.0.1:9404", "10.0.0.2:9404"], ["b1", "b2"], None),
        (["b1:9404", "10.0.0.2:9404"], ["b1", "b2"], None),
        (["localhost:9404", "localhost:9405"], ["localhost", "localhost"], None),
    ],
)
def test_a_scraped_broker_is_the_registered_one_that_its_label_shows(
    labels: list[str], hosts: list[str], expected: tuple[list[str], list[str]] | None
) -> None:
    """A label shows a broker by host, pod or id; if it shows none, nothing is concluded."""
    brokers = [BrokerFacts(number, f"{host}:9092") for number, host in enumerate(hosts)]
    found = match_brokers(labels, brokers)
    assert found == (None if expected is None else tuple(map(tuple, expected)))


def test_the_time_of_a_day() -> None:
    """A recorded day begins and ends at midnight in UTC."""
    assert time_of("2026-11-26") == Time(
        datetime(2026, 11, 26, tzinfo=UTC), datetime(2026, 11, 27, tzinfo=UTC)
    )
