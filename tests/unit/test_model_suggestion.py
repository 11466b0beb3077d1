"""Limits that use suggests, and why others are not suggested."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.model.quotas.entity import USER, Entity
from quota_ops.model.usage.suggestion import Suggestion, suggest_limits
from quota_ops.model.usage.use import QuotaUse, SeriesShare, UseOverview, UseVerdict
from quota_ops.report.outline.layout import Table
from quota_ops.report.screens.usage import suggestions_screen

AT = datetime(2026, 11, 26, tzinfo=UTC)
ALICE, EVERYONE = Entity.of({USER: "alice"}), Entity.of({USER: None})


@dataclass(frozen=True)
class Case:
    """The use of a quota of 1,000,000, by its series, and what is suggested."""

    says: tuple[float | None, str] | None
    use: tuple[tuple[float, float], ...] = ((400_000, 450_000),)
    """p95 and the highest use of each series."""
    key: str = "producer_byte_rate"
    limit: float = 1_000_000
    verdict: UseVerdict = UseVerdict.USED
    reason: str | None = None
    at_limit: float | None = 0
    at_limit_least: float = 0
    reached: int = 99
    """How many of the series were at the limit for `at_limit` seconds."""
    surely: int = 99
    """How many of these were at it for `at_limit_least` seconds."""
    throttled: bool = False
    known_limit: float | None = 1_000_000
    seen: float = 1.0
    hours: float = 14 * 24
    """For how many of 336 hours each series has samples."""
    brokers: int = 1
    without_names: tuple[str, ...] = ()
    entity: Entity = ALICE


CASES = {
    "p95 and a margin": Case((480_000, "by the p95 of its busiest client")),
    "the highest use": Case((790_000, "by the highest use of its busiest client"), ((1e5, 789e3),)),
    "the busiest of several": Case(
        (480_000, "by the p95 of its busiest client"), ((1, 2), (4e5, 5))
    ),
    "a limit that fits": Case(None, ((700_000, 800_000),)),
    "a limit that is close": Case((1_200_000, "by the p95 of its busiest client"), ((96e4, 96e4),)),
    "a share of a thread": Case(
        (0.031, "by the p95 of its busiest client"), ((0.0251, 0.02),), "request_percentage", 100
    ),
    "a small number of changes": Case(
        (1.4, "by the p95 of its busiest client"), ((1.1, 1.2),), "controller_mutation_rate", 50
    ),
    "throttled": Case(
        (None, "its clients reached it, so how much they need is unknown"), throttled=True
    ),
    "at the limit": Case(
        (None, "its clients reached it, so how much they need is unknown"),
        at_limit=60,
        at_limit_least=60,
    ),
    "perhaps at the limit": Case(
        (None, "its clients may have reached it, so how much they need is unknown"), at_limit=60
    ),
    "all of several at the limit": Case(
        (None, "each of the 2 clients with this limit reached it, so it is too low"),
        ((1e6, 1e6), (9e5, 1e6)),
        at_limit=60,
        at_limit_least=60,
    ),
    "one of many at the limit": Case(
        (
            None,
            "1 of 20 clients reached it, so their need is unknown; "  # noqa: ISC004 - a pair
            "19 of its 20 clients have a p95 of at most 190 kB/s",
        ),
        tuple((1e4 * number, 1e6) for number in range(20, 0, -1)),
        at_limit=60,
        at_limit_least=60,
        reached=1,
    ),
    "many that need little": Case(
        (
            480_000,
            "by the p95 of its busiest client; 19 of its 20 clients have a p95 of at most 1 B/s",
        ),
        ((400_000, 5), *[(0, 0)] * 19),
    ),
    "a limit that no run had read": Case(
        (None, "its limit then was another or is not known, so it may have held its clients back"),
        known_limit=None,
        at_limit=None,
    ),
    "a lower limit until it was raised": Case(
        (None, "its limit then was another or is not known, so it may have held its clients back"),
        ((5e4, 5e4), (5e4, 5e4)),
        known_limit=50_000,
        throttled=True,
    ),
    "one of several at the limit, the other perhaps": Case(
        (None, "1 of 2 clients reached it, so their need is unknown"),
        ((1e6, 1e6), (9e5, 1e6)),
        at_limit=60,
        at_limit_least=60,
        surely=1,
    ),
    "too little seen": Case((None, "only 89 % of the time was seen"), seen=0.899),
    "one hour of use": Case(
        (None, "its busiest client has samples for only 1.0 of 336 hours"), hours=1
    ),
    "brokers of another cluster": Case(
        (
            None,
            "more brokers were scraped than are registered, so it may be use of another cluster",
        ),
        brokers=0,
    ),
    "series without names": Case(
        (None, "some series of this key have no names of clients, so it may be the use of others"),
        without_names=("producer_byte_rate",),
    ),
    "a limit that fits, and too little seen": Case(None, ((700_000, 800_000),), seen=0.1),
    "unused": Case(
        (None, "nobody used it: remove it if nobody will"), (), verdict=UseVerdict.UNUSED
    ),
    "a default that nobody used": Case(
        (None, "nobody used it: remove it if nobody will, unless it is there to measure"),
        (),
        verdict=UseVerdict.UNUSED,
        entity=EVERYONE,
    ),
    "a default that nobody can reach": Case(
        (None, "less than 1/1,000 of it was used, as if it is there to measure"),
        limit=100 * 2**30,
        entity=EVERYONE,
    ),
    "a default that is high": Case(
        (480_000, "by the p95 of its busiest client"), limit=480_000_000, entity=EVERYONE
    ),
    "unknown": Case((None, "no rules"), (), verdict=UseVerdict.UNKNOWN, reason="no rules"),
    "not seen": Case(
        (None, "no use was seen, which does not prove that there was none"),
        (),
        verdict=UseVerdict.NOT_SEEN,
    ),
    "unlimited": Case(None, limit=2.0**63),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_use_suggests(case: Case) -> None:
    """A limit is suggested only from use that was not throttled, and it would not throttle it."""
    series = tuple(
        SeriesShare(
            *("alice", None, "1", 0, p95, highest, p95 / 1e6, case.known_limit),
            case.at_limit_least if number < min(case.reached, case.surely) else 0,
            case.at_limit if number < case.reached else 0,
            case.throttled,
            case.hours * 3600,
            case.hours * 3600,
        )
        for number, (p95, highest) in enumerate(case.use)
    )
    quota = QuotaUse(case.entity, case.key, case.limit, None, case.verdict, case.reason, series)
    time, coverage = (AT - timedelta(days=14), AT), {"1": case.seen}
    overview = UseOverview(
        *("c", *time, 60, 60, coverage, case.seen, case.brokers, 1, AT, [quota], {}, ()),
        without_names=case.without_names,
    )

    found = list(suggest_limits(overview, 20))

    expected = case.says and Suggestion(case.entity.text, case.key, case.limit, *case.says)
    assert found == ([expected] if expected else [])


def test_a_limit_that_falls_far_does_not_fall_by_all_of_it() -> None:
    """A change is rounded, but not to -100 %, which only a limit of 0 would be."""
    overview = UseOverview("c", AT, AT, 60, 60, {}, 0, None, 0, None, [], {}, ())
    limits = ((100.0 * 2**30, 1.5e6), (1e6, 333_333.0))
    found = [Suggestion("user=a", "producer_byte_rate", *each, reason="") for each in limits]

    (table,) = [part for part in suggestions_screen(overview, found) if isinstance(part, Table)]

    assert [row.cells[4].text for row in table.rows] == ["-99.999 %", "-66.7 %"]
