"""What a plan's cuts would have done last week, by cases: tests/cases/throttling.yaml."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.errors import UseUnknown
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import Key
from quota_ops.model.stored import from_json, to_json
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.throttling import CutUse, Delays, Throttling
from quota_ops.precedence.effects import find_write_effects
from quota_ops.report.outline.throttling import describe_throttling
from quota_ops.sql.client_effects import apply_targets
from quota_ops.stages.plan.throttling import DAYS, PastUse, find_throttling
from quota_ops.usage.source import Samples
from tests.yaml_cases import load_yaml

KEY = "producer_byte_rate"
NOW = datetime(2026, 11, 26, tzinfo=UTC)
MINUTES = DAYS * 24 * 60
CASES = [
    pytest.param(case, id=case["case"])
    for case in load_yaml(
        (Path(__file__).parents[1] / "cases" / "throttling.yaml").read_text("utf-8")
    )
]


class Recorded:
    """The use of a case: a sample each minute, and each broker of it scraped all week."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case

    def read(self, key: str, series: Collection[SeriesNames], time: Time) -> Samples:
        """Return the samples of some series."""
        if why := self._case.get("unknown"):
            raise UseUnknown(why)
        start = NOW - timedelta(days=DAYS)
        assert (key, *time) == (self._case.get("key", KEY), start, NOW)
        rates = [
            (start + timedelta(minutes=minute), broker, key, *name, float(rate))
            for name, broker, minute, rate in self._list_minutes()
            if name in series
        ]
        brokers = sorted({broker for _, broker, *_ in self._list_minutes()})
        scrapes = [
            (start + timedelta(minutes=minute), broker, True)
            for broker in brokers
            for first, last in [self._case.get("unseen", {}).get(broker, (0, 0))]
            for minute in range(MINUTES)
            if not 60 * first <= minute < 60 * last
        ]
        return Samples(
            table(
                rates,
                time=TIME,
                broker=TEXT,
                key=TEXT,
                user_name=TEXT,
                client_id=TEXT,
                value=NUMBER,
            ),
            table(scrapes, time=TIME, broker=TEXT, up=pa.bool_()),
            [SeriesNames(user, None) for user in self._case.get("throttled", ())],
        )

    def _list_minutes(self) -> list[tuple[SeriesNames, str, int, float]]:
        return [
            (
                SeriesNames(use.get("user"), use.get("client_id")),
                use.get("broker", "1"),
                minute,
                rate,
            )
            for use in self._case["use"]
            for hour, rate in enumerate(use["hours"])
            for start in [round(60 * (use.get("from", 0) + hour))]
            for minute in range(start, min(start + 60, MINUTES))
        ]


TIME, TEXT, NUMBER = pa.timestamp("us", "UTC"), pa.string(), pa.float64()


def table(rows: list[tuple[Any, ...]], **types: pa.DataType) -> pa.Table:
    """Return rows as a table."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in types)
    arrays = [
        pa.array(list(column), kind) for column, kind in zip(columns, types.values(), strict=True)
    ]
    return pa.table(arrays, names=list(types))


def find(case: dict[str, Any]) -> Throttling:
    """Return what the writes of a case would have done."""
    key = case.get("key", KEY)
    before = {Key(entity, key): float(value) for entity, value in case["stored"].items()}
    writes = [
        Difference(
            "id",
            entity,
            key,
            Kind.PENDING,
            Action.CLEAR if value is None else Action.SET,
            before=before.get(Key(entity, key)),
            after=None if value is None else float(value),
        )
        for entity, value in case["writes"].items()
    ]
    effects = find_write_effects([(*row, value) for row, value in before.items()], writes)
    after = apply_targets(before, {row.id: row.target for row in writes})
    return find_throttling(
        writes,
        effects,
        before,
        after,
        read=Recorded(case).read,
        step=60,
        brokers=[
            BrokerFacts(number, "kafka:9092") for number in range(1, 1 + case.get("brokers", 1))
        ],
        now=NOW,
        past=past_of(case),
    )


def past_of(case: dict[str, Any]) -> PastUse:
    """Return the highest use of each series of a case, if it has recorded days."""
    if "recorded" not in case:
        return PastUse({}, 0, {})
    highest = {
        SeriesNames(use.get("user"), use.get("client_id")): float(max(use["hours"]))
        for use in case["use"]
    }
    days = case["recorded"]
    return PastUse({KEY: highest}, days, {KEY: {"1": [(0, days * 86400)]}})


@pytest.mark.parametrize("case", CASES)
def test_whom_a_cut_would_have_throttled(case: dict[str, Any]) -> None:
    """A cut is told as a range with its window and coverage, or why it cannot be determined."""
    found = find(case)

    assert list(describe_throttling(found)) == case["says"]
    assert from_json(Throttling, to_json(Throttling, found)) == found


def test_use_that_throttling_hides_has_no_upper_end() -> None:
    """Of requests and topic changes only the lower end is told: a muted client shows no use."""
    delays = Delays("user=a", "1", 7200.0, 9000.0, 60.0, 0.0, 5.0, 1.0)
    found = Throttling(DAYS, "now", (CutUse("user=a", "request_percentage", (delays,)),))

    (words,) = describe_throttling(found)
    told = "user=a request_percentage would have throttled user=a for at least 2 h in the last"
    assert words == f"{told} 7 days (seen 100 % of that time, broker 1)."


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_consumer_may_be_throttled_for_longer_than_its_bytes_take(share: float) -> None:
    """A throttled fetch gets an empty response and is sent again, so the range has no upper end."""
    delays = Delays("user=a", "1", 3300.0, 11_100.0, 60.0, 0.0, 5.0, share)
    cut = CutUse("user=a", "consumer_byte_rate", (delays,))

    (words,) = describe_throttling(Throttling(DAYS, "now", (cut,)))

    assert words == (
        "user=a consumer_byte_rate would have throttled user=a for 0.9 to 3.1 h or longer in "
        "the last 7 days, with delays up to 60 s or longer "
        f"(seen {100 * share:.0f} % of that time, broker 1)."
    )
    assert not cut.is_bounded
    assert cut._replace(key=KEY).is_bounded is (share == 1)
