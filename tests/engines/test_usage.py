"""Digests on both engines, and delays, against plain loops over the samples."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import isclose, nan, sqrt
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota_ops.model.usage.digest import BASE, ShareRow, UseRow
from quota_ops.model.usage.seen import count_each, count_together
from quota_ops.model.usage.series import Time, time_of
from quota_ops.sql import text
from quota_ops.sql.embedded_usage import add_seen, digest_part, find_delays, pack_series
from quota_ops.sql.spark_usage import SampleFiles, digest_samples
from quota_ops.store.history.digests import find_digests, list_days, write_digest
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.usage.scrapes import find_seen
from tests.engines.usage_oracle import (
    STEP,
    Sample,
    find_counted,
    find_quantile,
    find_values,
    simulate,
)
from tests.usage.recorded import merge, read_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = datetime(2026, 11, 25, tzinfo=UTC)
KEY = "producer_byte_rate"
NAMES: tuple[tuple[str | None, str | None], ...] = (
    ("alice", None),
    ("alice", "etl"),
    (None, "etl"),
    ("<b>", 'q"=1'),
)
MINUTES = 12

rates = st.sampled_from([0.0, 1.0, 1.05, 1000.0, 1e6]) | st.floats(1e-3, 1e12)
samples = st.dictionaries(
    st.tuples(st.integers(0, MINUTES), st.sampled_from(["1", "2"]), st.sampled_from(NAMES)),
    rates,
    max_size=60,
).map(
    lambda some: [
        Sample(minute, broker, *name, value) for (minute, broker, name), value in some.items()
    ]
)
seen_minutes = st.sets(st.tuples(st.sampled_from(["1", "2"]), st.integers(0, MINUTES)), min_size=1)


def table_of_rates(some: list[Sample]) -> pa.Table:
    """Return samples as a reader of Prometheus returns them."""
    columns = zip(*some, strict=True) if some else ([] for _ in Sample._fields)
    minutes, brokers, users, client_ids, values = map(list, columns)
    return pa.table(
        {
            "time": pa.array(map(moment, minutes), pa.timestamp("us", "UTC")),
            "broker": pa.array(brokers, pa.string()),
            "key": pa.array([KEY] * len(brokers), pa.string()),
            "user_name": pa.array(users, pa.string()),
            "client_id": pa.array(client_ids, pa.string()),
            "value": pa.array(values, pa.float64()),
        }
    )


def table_of_scrapes(seen: set[tuple[str, int]]) -> pa.Table:
    """Return when each broker was up: at all other times it was down."""
    every = [(broker, minute) for broker in ("1", "2") for minute in range(MINUTES + 1)]
    return pa.table(
        {
            "time": pa.array([moment(minute) for _, minute in every], pa.timestamp("us", "UTC")),
            "broker": [broker for broker, _ in every],
            "up": [state in seen for state in every],
        }
    )


def list_shares(limit: float) -> list[ShareRow]:
    """Return that the clients of alice share a limit, and all others share none."""
    names = [name for name in NAMES if name[0] == "alice"]
    return [ShareRow("alice", KEY, *name, limit, 2 * limit) for name in names]


def moment(minute: int) -> datetime:
    """Return the time of a sample."""
    return DAY + timedelta(minutes=minute)


def table_of_delayed(names: Sequence[tuple[str | None, str | None]]) -> pa.Table:
    """Return that broker 1 throttled some series."""
    return pa.table(
        {
            "broker": pa.array(["1"] * len(names), pa.string()),
            "key": pa.array([KEY] * len(names), pa.string()),
            "user_name": pa.array([user for user, _ in names], pa.string()),
            "client_id": pa.array([client_id for _, client_id in names], pa.string()),
        }
    )


def digest(some: list[Sample], seen: set[tuple[str, int]], day: str = "2026-11-25") -> pa.Table:
    """Return the buckets of samples, of which broker 1 throttled those of the first name."""
    delayed = table_of_delayed(NAMES[:1])
    return digest_part(table_of_rates(some), table_of_scrapes(seen), delayed, day, STEP)


@settings(max_examples=20, deadline=None)
@given(samples, seen_minutes, st.sampled_from([1.0, 1000.0, 5e5]))
def test_a_digest_has_the_percentiles_of_all_counted_time(
    some: list[Sample], seen: set[tuple[str, int]], least: float
) -> None:
    """A percentile is exact within 2.5 percent, and the time at a limit lies in its range."""
    found = merge({"2026-11-25": digest(some, seen)}, least)

    known = {
        (sample.broker, sample.user, sample.client_id)
        for sample in some
        if (sample.broker, sample.minute) in seen
    }
    assert {(row.broker, row.user_name, row.client_id) for row in found} == known
    tolerance = sqrt(BASE) - 1 + 1e-6
    for row in found:
        name = row.user_name, row.client_id
        values = [*find_counted(some, seen, row.broker, name).values()]
        assert row.counted == STEP * len(values)
        assert isclose(row.highest, max(values), rel_tol=1e-7)
        assert row.throttled is ((row.broker, *name) == ("1", *NAMES[0]))
        for percent, found_value in ((50, row.p50), (95, row.p95)):
            exact = find_quantile(values, percent)
            assert isclose(found_value, exact, rel_tol=tolerance), (percent, values)
        fewest, exact, most = (
            STEP * sum(value >= least * factor for value in values)
            for factor in (BASE + 1e-6, 1, 1 / BASE - 1e-6)
        )
        assert fewest <= row.at_limit_least <= exact <= row.at_limit <= most


@settings(max_examples=10, deadline=None)
@given(samples, seen_minutes, st.integers(1, MINUTES))
def test_digests_of_days_add_up(some: list[Sample], seen: set[tuple[str, int]], at: int) -> None:
    """Two digests of a part of the time merge to the use of all of it."""
    parts = {
        f"2026-11-2{day}": digest(
            [sample for sample in some if (sample.minute < at) is early],
            {(broker, minute) for broker, minute in seen if (minute < at) is early},
            f"2026-11-2{day}",
        )
        for day, early in enumerate((True, False))
    }
    assert merge(parts) == merge({"2026-11-25": digest(some, seen)})


@settings(max_examples=20, deadline=None)
@given(samples, seen_minutes, st.sampled_from([1.0, 1000.0, 5e5, 1e6]))
def test_delays_are_those_of_a_queue(
    some: list[Sample], seen: set[tuple[str, int]], limit: float
) -> None:
    """The delays of a limit are those of a queue on each broker, for all who share it together."""
    found = find_delays(table_of_rates(some), table_of_scrapes(seen), list_shares(limit), STEP)

    rows = {row.broker: row for row in found}
    shared = [
        sample
        for sample in some
        if sample.user == "alice" and (sample.broker, sample.minute) in seen
    ]
    since = min((sample.minute for sample in shared), default=MINUTES + 1)
    known = {(broker, minute) for broker, minute in seen if minute >= since}
    assert {*rows} == {broker for broker, _ in known}
    for broker, row in rows.items():
        of_each = [find_values(some, known, broker, name) for name in NAMES if name[0] == "alice"]
        values = [sum(together) for together in zip(*of_each, strict=True)]
        minutes = sorted(minute for seen_on, minute in known if seen_on == broker)
        least, delayed, longest = simulate(dict(zip(minutes, values, strict=True)), limit)
        of_row = sum(end - start for start, end in row.seen)
        assert (of_row, row.highest) == (STEP * len(values), max(values))
        assert isclose(row.least, least, rel_tol=1e-6, abs_tol=1e-3)
        assert row.at_present == STEP * sum(value >= 0.97 * 2 * limit for value in values)
        assert isclose(row.longest, longest, rel_tol=1e-6, abs_tol=1e-3)
        assert row.least <= row.delayed
        # Sums of floats may leave a rest of a queue that is empty.
        assert abs(row.delayed - delayed) <= (0 if longest == row.longest else STEP)
    together = count_together({broker: row.seen for broker, row in rows.items()}, None)
    assert together == STEP * sum(
        all((broker, minute) in known for broker in rows) for _, minute in known
    ) / max(len(rows), 1)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("123"),
        st.dictionaries(st.integers(0, 400), st.booleans(), min_size=1, max_size=12),
        min_size=1,
    )
)
def test_seen_is_the_time_in_which_all_brokers_were(scraped: dict[str, dict[int, bool]]) -> None:
    """It is the number of seconds in which the last scrape of each broker was recent, and good."""
    rows = [
        (DAY + timedelta(seconds=at), broker, is_up)
        for broker, own in scraped.items()
        for at, is_up in own.items()
    ]
    columns = (list(column) for column in zip(*rows, strict=True))
    scrapes = pa.table(dict(zip(("time", "broker", "up"), columns, strict=True)))
    seconds = {
        broker: {
            second
            for second in range(420)
            for at in [max((at for at in own if at <= second), default=min(own))]
            if own[at] and (second - at < STEP if second >= at else at <= STEP)
        }
        for broker, own in scraped.items()
    }

    found = find_seen(scrapes, STEP, Time(DAY, DAY + timedelta(seconds=420)))

    assert count_each(found) == {broker: len(own) for broker, own in sorted(seconds.items())}
    assert count_together(found, None) == len(set.intersection(*seconds.values()))


def test_a_sample_stands_for_the_time_until_the_next_scrape() -> None:
    """Scrapes each 15 s count 15 s each, and the rest of a gap of an hour counts as not seen."""
    times = [
        *(DAY + timedelta(seconds=15 * number) for number in range(4)),
        DAY + timedelta(hours=1),
    ]
    scrapes = pa.table(
        {"time": pa.array(times, pa.timestamp("us", "UTC")), "broker": ["1"] * 5, "up": [True] * 5}
    )
    some = [Sample(0, "1", "alice", None, 3e4), Sample(60, "1", "alice", None, 3e4)]
    rows = table_of_rates(some)

    day = digest_part(rows, scrapes, table_of_delayed([]), "2026-11-25", STEP)
    (use,) = merge({"2026-11-25": day}, 2e4)
    (delays,) = find_delays(rows, scrapes, list_shares(2e4), STEP)

    assert use == UseRow(
        *("1", KEY, "alice", None, 0),
        counted=75.0,
        at_limit_least=75.0,
        at_limit=75.0,
        p50=3e4,
        p95=3e4,
        highest=3e4,
        throttled=False,
    )
    # 15 s of 30 kB/s leave 7.5 s of delay, which 15 s without any use end; 60 s leave 30 s. Short
    # bursts may show as that, and throttle for half of it.
    assert delays.seen == [(0, 105), (3600, 3660)]
    assert delays[4:] == (37.5, 75.0, 30.0, 0.0, 3e4)


def test_time_without_a_number_is_not_seen() -> None:
    """A sample that is NaN is no proof of use below a limit."""
    some = [Sample(0, "1", "alice", None, 3e4), Sample(1, "1", "alice", None, nan)]
    scrapes = table_of_scrapes({("1", minute) for minute in range(MINUTES + 1)})

    (delays,) = find_delays(table_of_rates(some), scrapes, list_shares(2e4), STEP)

    seen = [(0, STEP), (2 * STEP, STEP * (MINUTES + 1))]
    assert (delays.seen, delays.least, delays.highest) == (seen, STEP / 2, 3e4)


@pytest.mark.parametrize(
    ("seconds", "rate", "least"),
    [(11, 3e4, 5.5), (11, 6e4, 11.0), (100, 2.1e4, 89.0)],
    ids=["a burst", "a large burst", "steady use"],
)
def test_a_burst_throttles_for_less_than_it_shows(seconds: int, rate: float, least: float) -> None:
    """One shorter than Kafka's window shows for 11 s, and throttles only for what is too much."""
    times = [DAY + timedelta(seconds=second) for second in range(200)]
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    scrapes = pa.table({"time": stamps, "broker": ["1"] * 200, "up": [True] * 200})
    some = [
        Sample(0, "1", "alice", None, rate if 20 <= at < 20 + seconds else 1) for at in range(200)
    ]
    rows = table_of_rates(some).set_column(0, "time", stamps)

    (delays,) = find_delays(rows, scrapes, list_shares(2e4), 1)

    assert delays.least == pytest.approx(least)


def test_spark_finds_the_same(session: "SparkSession") -> None:
    """Spark finds the same digest as DuckDB, row by row."""
    random = Random(1)  # noqa: S311 - samples, the same each time
    some = [
        Sample(minute, broker, *name, random.lognormvariate(10, 3) * random.choice([0, 1, 1]))
        for minute in range(MINUTES)
        for broker in ("1", "2")
        for name in NAMES
    ]
    seen = {(broker, minute) for broker in ("1", "2") for minute in range(MINUTES) if minute % 5}
    rows, scrapes = table_of_rates(some), table_of_scrapes(seen)
    delayed = table_of_delayed(NAMES[:2])
    own = digest_part(rows, scrapes, delayed, "2026-11-25", STEP)
    views = {"rates": rows, "scrapes": scrapes, "delayed": delayed}
    for name, table in views.items():
        session.createDataFrame(table.combine_chunks()).createOrReplaceTempView(name)

    found = session.sql(text.digest_text("2026-11-25", STEP)).collect()

    assert sorted(repr(row.asDict()) for row in found) == sorted(map(repr, own.to_pylist()))


def test_the_job_records_the_days_of_all_clusters(session: "SparkSession", tmp_path: Path) -> None:
    """Spark's job stores the same day of each cluster as `record` would, and of no other day."""
    some = [
        Sample(minute, broker, *name, 1000.0 * (minute + len(broker)))
        for minute in range(MINUTES)
        for broker in ("1", "2")
        for name in NAMES
    ]
    seen = {(broker, minute) for broker in ("1", "2") for minute in range(MINUTES) if minute % 5}
    tables = {
        "rates": table_of_rates(some),
        "scrapes": table_of_scrapes(seen),
        "times": table_of_rates([Sample(3, "1", *NAMES[0], 12.5), Sample(3, "2", "x", None, nan)]),
    }
    for name, table in tables.items():
        later = table.set_column(0, "time", pc.add(table["time"], pa.scalar(timedelta(days=1))))
        rows = pa.concat_tables(
            part.append_column("cluster", pa.array([cluster] * part.num_rows, pa.string()))
            for cluster in ("a", "b")
            for part in (table, later)
        )
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    paths = (str(tmp_path / f"{name}.parquet") for name in tables)
    store = RunStore(open_place(tmp_path / "store"))

    clusters = list(digest_samples(session, SampleFiles(*paths), "2026-11-25", STEP, store))

    assert clusters == ["a", "b"]
    own = merge({"2026-11-25": digest(some, seen)}, 3e3)
    assert [read_use(store, cluster, ["2026-11-25"], 3e3) for cluster in clusters] == [own, own]
    assert list_days(store, "a") == ["2026-11-25"]
    (stored,) = find_digests(store, "a", ["2026-11-25"]).values()
    seen_runs = find_seen(tables["scrapes"], STEP, time_of("2026-11-25"))
    own_day = add_seen("2026-11-25", [pack_series(digest(some, seen))], seen_runs)
    expected = write_digest(store, "own", "2026-11-25", own_day)
    assert pq.read_table(str(stored)).equals(pq.read_table(str(expected)))
