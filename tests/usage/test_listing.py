"""What is listed of a quota whose limits, level or samples do not fit what brokers counted."""

from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.series import SeriesNames, SeriesUse, Time
from quota_ops.model.usage.use import Verdict
from quota_ops.stages.use.listing import Listing
from quota_ops.stages.use.past_limits import Look, PastQuotas
from quota_ops.stages.use.spans import KeyUse, Span, Use

KEY = "producer_byte_rate"
CAROL = Entity.of({"user": "carol"})
END = datetime(2026, 11, 26, tzinfo=UTC)
TIME = Time(END - timedelta(days=7), END)
OTHER = SeriesUse("1", SeriesNames("other", None), 1.0, 1.0, 1.0, 60.0)


def use(names: SeriesNames, *, is_known: bool) -> Use:
    """Return the use of a series of which no quota is known."""
    return Use(SeriesUse("1", names, 6e6, 9e6, 9.9e6, 60.0), Span(TIME, is_known, None, None, None))


@pytest.mark.parametrize(
    ("looked", "uses", "without_number", "expected"),
    [
        (
            END,
            [use(SeriesNames("carol", None), is_known=False)],
            set(),
            (Verdict.USED, None, [(9e6, 9.9e6, None, None)]),
        ),
        (END, [], set(), (Verdict.NOT_SEEN, "its limit is known for a part of the time only", [])),
        (
            TIME.start,
            [use(SeriesNames("carol", "c1"), is_known=True)],
            set(),
            (Verdict.UNKNOWN, "brokers counted its clients by user and client id", []),
        ),
        (
            TIME.start,
            [],
            {SeriesNames("carol", None)},
            (Verdict.NOT_SEEN, "its samples are no numbers (NaN)", []),
        ),
        (
            TIME.start,
            [use(SeriesNames(None, None), is_known=True)],
            set(),
            (
                Verdict.UNKNOWN,
                "its series have no names of clients: the exporter or a scrape rule drops them",
                [],
            ),
        ),
        (TIME.start, [], set(), (Verdict.UNUSED, None, [])),
    ],
    ids=["limit unknown then", "no series", "another level", "NaN", "no names", "unused"],
)
def test_a_quota_is_unused_only_if_nothing_contradicts_it(
    looked: datetime,
    uses: list[Use],
    without_number: set[SeriesNames],
    expected: tuple[Verdict, str | None, list[tuple[float | None, ...]]],
) -> None:
    """Use before the first run is shown without a share, and a contradiction is no proof."""
    facts = ClusterFacts((BrokerFacts(1, "kafka:9092"),), "User:admin")
    past = PastQuotas([Look(looked, {KEY: {CAROL: 10e6}})], {}, facts, None, ())
    known = Use(OTHER, Span(TIME, True, None, None, None))
    found = KeyUse([known, *uses], without_number)

    (quota,) = Listing(past, TIME, KEY, True, found, {"1": 7 * 86400.0}).list_quotas()

    clients = [(each.p95, each.highest, each.share, each.at_limit) for each in quota.clients]
    assert (quota.verdict, quota.reason, clients) == expected
