"""What is listed of a quota whose limits, level or samples do not fit what brokers counted."""

from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.errors import UseUnknown
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.series import SeriesNames, SeriesUse, Time
from quota_ops.model.usage.suggestion import suggest_limits
from quota_ops.model.usage.use import QuotaUse, SeriesShare, UseOverview, Verdict
from quota_ops.report.screens.usage import list_coverage
from quota_ops.runs.usage import require_known
from quota_ops.stages.use.listing import Listing
from quota_ops.stages.use.past_limits import Look, PastQuotas
from quota_ops.stages.use.spans import KeyUse, Span, Use, find_span

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


def test_a_short_part_of_the_time_does_not_decide_the_p95() -> None:
    """The p95 is that of the longer of two times with one limit, and the highest that of both."""
    day = Span(TIME, True, CAROL, 10e6, 10e6)
    names = SeriesNames("carol", None)
    recorded = Use(SeriesUse("1", names, 1e6, 1e6, 9e6, 5 * 86400.0), day)
    today = Use(SeriesUse("1", names, 1e6, 9e6, 9.5e6, 17 * 3600.0), day)
    past = PastQuotas([Look(TIME.start, {KEY: {CAROL: 10e6}})], {}, None, None, ())
    found = KeyUse([recorded, today], set())

    (quota,) = Listing(past, TIME, KEY, True, found, {}).list_quotas()

    (client,) = quota.clients
    assert (client.p95, client.share, client.highest) == (1e6, 0.1, 9.5e6)
    assert client.counted == 5 * 86400 + 17 * 3600


def test_a_time_whose_limit_is_not_known_is_no_time_below_it() -> None:
    """Between runs that saw two limits the higher one counts for the share, the lower for the rest.

    Before the first run, a client may have been at its limit in all of the time.
    """
    looks = [
        Look(TIME.start + timedelta(days=day), {KEY: {CAROL: limit}})
        for day, limit in ((1, 10e6), (3, 8.2e6))
    ]
    past = PastQuotas(looks, {}, None, None, ())
    names = SeriesNames("carol", None)
    spans = [
        find_span(KEY, [period], names, Time(period.start, period.end))
        for period in past.periods(KEY, *TIME)
    ]
    uses = [
        Use(
            SeriesUse("1", names, 8e6, 8e6, 8e6, (span.time.end - span.time.start).total_seconds()),
            span,
        )
        for span in spans
    ]

    (quota,) = Listing(past, TIME, KEY, True, KeyUse(uses, set()), {}).list_quotas()

    assert [(span.limit, span.lowest) for span in spans] == [
        (None, None),
        (10e6, 8.2e6),
        (8.2e6, 8.2e6),
    ]
    assert [use.has_reached for use in uses] == [False, True, True]
    (client,) = quota.clients
    assert (client.at_limit_least, client.at_limit) == (0, 86400)


def test_use_without_a_share_makes_no_complete_list() -> None:
    """On the first day no limit of the past is known, so a list of who is near it is not empty."""
    share = SeriesShare("carol", None, "1", 1.0, 1.0, 1.0, None, None, None, None, False, 60.0)
    quota = QuotaUse(CAROL, KEY, 1.0, None, Verdict.USED, None, (share,))
    overview = UseOverview("orders", *TIME, 60.0, 60, {"1": 1.0}, 1, 0.0, END, [quota], {}, ())

    require_known(overview)
    with pytest.raises(UseUnknown, match="does not show who is near"):
        require_known(overview, is_list=True)


def test_use_that_may_be_of_others_suggests_nothing() -> None:
    """If some series of a key have no names, its rows may have the use of other clients."""
    share = SeriesShare("carol", None, "1", 1.0, 1.0, 1.0, 0.1, 10.0, 0.0, 0.0, False, 7 * 86400.0)
    quota = QuotaUse(CAROL, KEY, 10.0, None, Verdict.USED, None, (share,))
    overview = UseOverview("orders", *TIME, 60.0, 60, {"1": 1.0}, 1, 1.0, END, [quota], {}, ())
    lost = overview._replace(without_names=(KEY,))

    suggested = [next(suggest_limits(each, 20)).suggested for each in (overview, lost)]

    assert suggested == [2.0, None]
    text = ["".join(span.text for span in line) for line in list_coverage(lost)]
    assert any("have no names of clients" in words for words in text), text
