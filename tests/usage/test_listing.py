"""What is listed of a quota whose limits, level or samples do not fit what brokers counted."""

from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.errors import UseUnknown
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.digest import UseRow
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.suggestion import suggest_limits
from quota_ops.model.usage.use import QuotaUse, SeriesShare, UseOverview, UseVerdict
from quota_ops.report.outline.layout import plain
from quota_ops.report.screens.usage import list_coverage, select_quotas, usage_screen
from quota_ops.runs.usage import require_known
from quota_ops.stages.use.listing import Listing
from quota_ops.stages.use.past_limits import Look, PastQuotas
from quota_ops.stages.use.spans import SeriesUse, Span, find_span

KEY = "producer_byte_rate"
CAROL = Entity.of({"user": "carol"})
END = datetime(2026, 11, 26, tzinfo=UTC)
TIME = Time(END - timedelta(days=7), END)
SEEN = {"1": [(0, 7 * 86400)]}


def use(
    names: SeriesNames, span: Span, counted: float = 60.0, p95: float = 9e6, highest: float = 9.9e6
) -> SeriesUse:
    """Return the use of a series in a span."""
    return SeriesUse(UseRow("1", KEY, *names, 0, counted, 0.0, 0.0, 6e6, p95, highest, False), span)


UNKNOWN, WITHOUT_LIMIT = (Span(is_known, None, None, None) for is_known in (False, True))


@pytest.mark.parametrize(
    ("looked", "uses", "expected"),
    [
        (
            END,
            [use(SeriesNames("carol", None), UNKNOWN)],
            (UseVerdict.USED, None, [(9e6, 9.9e6, None, None)]),
        ),
        (
            END,
            [],
            (
                UseVerdict.NOT_SEEN,
                "stored since 2026-11-26T00:00:00Z, as far as runs have read",
                [],
            ),
        ),
        (
            TIME.start,
            [use(SeriesNames("carol", "c1"), WITHOUT_LIMIT)],
            (UseVerdict.UNKNOWN, "brokers counted its clients by user and client id", []),
        ),
        (
            TIME.start,
            [use(SeriesNames("carol", None), WITHOUT_LIMIT, counted=0)],
            (UseVerdict.NOT_SEEN, "its samples are no numbers (NaN)", []),
        ),
        (
            TIME.start,
            [use(SeriesNames(None, None), WITHOUT_LIMIT)],
            (
                UseVerdict.UNKNOWN,
                "its series have no names of clients: the exporter or a scrape rule drops them",
                [],
            ),
        ),
        (TIME.start, [], (UseVerdict.UNUSED, None, [])),
    ],
    ids=["limit unknown then", "no series", "another level", "NaN", "no names", "unused"],
)
def test_a_quota_is_unused_only_if_nothing_contradicts_it(
    looked: datetime,
    uses: list[SeriesUse],
    expected: tuple[UseVerdict, str | None, list[tuple[float | None, ...]]],
) -> None:
    """SeriesUse before the first run is shown without a share, and a contradiction is no proof."""
    facts = ClusterFacts((BrokerFacts(1, "kafka:9092"),), "User:admin")
    past = PastQuotas([Look(looked, {KEY: {CAROL: 10e6}})], {}, facts, ())
    found = [use(SeriesNames("other", None), WITHOUT_LIMIT), *uses]

    (quota,) = Listing(past, TIME, KEY, True, found, SEEN).list_quotas()

    clients = [(each.p95, each.highest, each.share, each.at_limit) for each in quota.clients]
    assert (quota.verdict, quota.reason, clients) == expected


def test_a_time_whose_limit_is_not_known_is_no_time_below_it() -> None:
    """Between runs that saw two limits the higher one counts for the share, the lower for the rest.

    Before the first run, a client may have been at its limit in all of the time.
    """
    looks = [
        Look(TIME.start + timedelta(days=day), {KEY: {CAROL: limit}})
        for day, limit in ((1, 10e6), (3, 8.2e6))
    ]
    past = PastQuotas(looks, {}, None, ())
    names = SeriesNames("carol", None)
    periods = past.periods(KEY, *TIME)
    spans = [find_span(KEY, [period], names) for period in periods]
    uses = [
        use(names, span, (period.end - period.start).total_seconds(), 8e6, 8e6)
        for period, span in zip(periods, spans, strict=True)
    ]

    (quota,) = Listing(past, TIME, KEY, True, uses, {}).list_quotas()

    assert [(span.limit, span.lowest) for span in spans] == [
        (None, None),
        (10e6, 8.2e6),
        (8.2e6, 8.2e6),
    ]
    (client,) = quota.clients
    assert (client.at_limit_least, client.at_limit) == (0, 86400)


def test_a_client_below_both_limits_was_at_neither() -> None:
    """Between runs that saw the default and then a quota of its own, a client was at no limit."""
    default, names = {Entity.of({"user": None}): 1e11}, SeriesNames("carol", None)
    stored = {TIME.start: default, END - timedelta(days=4): {**default, CAROL: 10e6}}
    past = PastQuotas([Look(at, {KEY: limits}) for at, limits in stored.items()], {}, None, ())
    spans = [find_span(KEY, [period], names) for period in past.periods(KEY, *TIME)]
    uses = [use(names, span, 86400, 1e6, 1e6) for span in spans]

    found = list(Listing(past, TIME, KEY, True, uses, {}).list_quotas())

    assert spans == [Span(False, None, None, 10e6), Span(True, CAROL, 10e6, 10e6)]
    assert [client.at_limit for quota in found for client in quota.clients] == [0]


def test_the_p95_is_of_the_time_with_the_limit_that_it_is_compared_with() -> None:
    """After a cut, the p95 is that of the time since, and the note shows how long that is."""
    names, day = SeriesNames("carol", None), 86400.0
    before, since = (Span(True, CAROL, limit, limit) for limit in (1e6, 5e5))
    uses = [use(names, before, 5 * day, 6e5, 6e5), use(names, since, 2 * day, 4e5, 4e5)]
    past = PastQuotas([Look(TIME.start, {KEY: {CAROL: 5e5}})], {}, None, ())

    (quota,) = Listing(past, TIME, KEY, True, uses, {}).list_quotas()
    overview = UseOverview("orders", *TIME, 60.0, 60, {"1": 1.0}, 1.0, 1, 1.0, END, [quota], {}, ())

    (client,) = quota.clients
    assert (client.p95, client.share, client.highest) == (4e5, 0.8, 6e5)
    assert (client.with_limit, client.counted) == (2 * day, 7 * day)
    assert "  p95 of the 48 h with this limit\n" in plain(usage_screen(overview, [quota]))


def test_use_without_a_share_makes_no_complete_list() -> None:
    """On the first day no limit of the past is known, so a list of who is near it is not empty."""
    unknown = None, None, None, None
    share = SeriesShare("carol", None, "1", 1.0, 1.0, 1.0, *unknown, False, 60.0, 60.0)
    quota = QuotaUse(CAROL, KEY, 1.0, None, UseVerdict.USED, None, (share,))
    overview = UseOverview("orders", *TIME, 60.0, 60, {"1": 1.0}, 1.0, 1, 0.0, END, [quota], {}, ())

    require_known(overview)
    with pytest.raises(UseUnknown, match="does not show who is near"):
        require_known(overview, is_list=True)


def test_a_client_that_waits_is_near_its_limit() -> None:
    """A muted client shows little use, and is in the list of those that are near or held back."""
    week = 7 * 86400.0
    muted, free = (
        SeriesShare("c", None, "1", 0.0, 0.0, 9.0, 0.0, 10.0, 0.0, 0.0, waits, week, week)
        for waits in (True, False)
    )
    quotas = [
        QuotaUse(CAROL, KEY, 10.0, None, UseVerdict.USED, None, (one,)) for one in (muted, free)
    ]

    assert select_quotas(quotas, near=80, unused=False) == quotas[:1]


def test_use_that_may_be_of_others_suggests_nothing() -> None:
    """If some series of a key have no names, its rows may have the use of other clients."""
    week = 7 * 86400.0
    share = SeriesShare("carol", None, "1", 1.0, 1.0, 1.0, 0.1, 10.0, 0.0, 0.0, False, week, week)
    quota = QuotaUse(CAROL, KEY, 10.0, None, UseVerdict.USED, None, (share,))
    overview = UseOverview("orders", *TIME, 60.0, 60, {"1": 1.0}, 1.0, 1, 1.0, END, [quota], {}, ())
    lost = overview._replace(without_names=(KEY,))

    suggested = [next(suggest_limits(each, 20)).suggested for each in (overview, lost)]

    assert suggested == [2.0, None]
    text = ["".join(span.text for span in line) for line in list_coverage(lost)]
    assert any("have no names of clients" in words for words in text), text
