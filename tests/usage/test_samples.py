"""Samples of a recorded Prometheus, whose brokers and clients were real."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import pytest

from quota_ops.model.errors import UseUnknown
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.stages.plan.use import read_samples
from quota_ops.usage.overview import read_throttled, read_use
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import list_brokers, read_rates, read_scrapes
from quota_ops.usage.source import SAMPLES, SCRAPES, UsageSource
from tests.usage.conftest import POLICY, connect, read_times
from tests.usage.recording import Answer, Question, serve
from tests.usage.scenario import ENCODED, QUOTED

TIMES = read_times()
BROKERS = ("broker-1", "broker-2")
WHOLE = Time(TIMES["started"], TIMES["ended"])


def read_rows(
    source: UsageSource, key: str, time: Time, names: Collection[SeriesNames] | None = None
) -> list[dict[str, Any]]:
    """Return the samples of a key on both brokers."""
    tables = list(read_rates(source, BROKERS, key, time, selection=names))
    assert {*(table.schema for table in tables)} <= {SAMPLES}
    return [row for table in tables for row in table.to_pylist()]


def test_samples_have_the_names_that_kafka_knows(source: UsageSource) -> None:
    """Names are decoded, each as the level of its quota counted it at that time."""
    assert list_brokers(source, TIMES["started"], TIMES["ended"]) == BROKERS
    found = read_rows(source, "producer_byte_rate", WHOLE)
    assert {(row["user_name"], row["client_id"]) for row in found} == {
        ("alice", None),
        ("bob", "web"),
        ("bob", None),  # since bob has a quota of his own
        ("carol", "x1"),
        ("dave", "etl"),
        (ENCODED, None),
        (None, QUOTED),
        (None, "many"),
        (None, "other"),  # bob's, before
        (None, "rare"),
        (None, "shared"),
    }
    assert None not in {row["value"] for row in found}
    assert {row["key"] for row in found} == {"producer_byte_rate"}


def test_a_frozen_broker_is_unknown_not_idle(source: UsageSource) -> None:
    """While a broker does not respond, its scrapes fail and it has no samples."""
    scrapes = read_scrapes(source, BROKERS, WHOLE)
    assert scrapes.schema == SCRAPES
    failed = [row for row in scrapes.to_pylist() if not row["up"]]
    assert {row["broker"] for row in failed} == {"broker-2"}
    frozen = TIMES["down"], TIMES["up"] + timedelta(seconds=6)
    assert all(frozen[0] <= row["time"] <= frozen[1] for row in failed)
    assert len(failed) >= (TIMES["up"] - TIMES["down"]).seconds // source.step - 1
    within = [
        row["broker"]
        for row in read_rows(source, "producer_byte_rate", WHOLE)
        if failed[0]["time"] <= row["time"] <= failed[-1]["time"]
    ]
    assert set(within) == {"broker-1"}


def test_a_selection_reads_its_series_only(source: UsageSource) -> None:
    """Only the selected names are read, also those with special characters, and no neighbor."""
    wanted = [SeriesNames(ENCODED, None), SeriesNames(None, QUOTED), SeriesNames("bob", "web")]
    time = Time(TIMES["down"], TIMES["ended"])
    everything, some = (
        read_rows(source, "producer_byte_rate", time, names) for names in (None, wanted)
    )
    expected = [
        row for row in everything if SeriesNames(row["user_name"], row["client_id"]) in wanted
    ]
    assert Counter(map(str, some)) == Counter(map(str, expected))
    assert len(expected) > len(wanted)


def test_samples_are_those_after_the_start(source: UsageSource) -> None:
    """Two adjacent times have no sample twice, and lose none."""
    middle = TIMES["started"] + timedelta(seconds=100)
    first, second, both = (
        read_rows(source, "request_percentage", Time(start, end))
        for start, end in (
            (TIMES["started"], middle),
            (middle, TIMES["down"]),
            (TIMES["started"], TIMES["down"]),
        )
    )
    assert Counter(map(str, both)) == Counter(map(str, first + second))
    assert max(row["time"] for row in first) <= middle < min(row["time"] for row in second)


def test_throttled_series_are_those_with_a_throttle_time(source: UsageSource) -> None:
    """A throttled client has a throttle time; NaN is that of a client that was not throttled."""
    time = Time(TIMES["started"], TIMES["down"])
    with open_prometheus(source.connection) as server:
        found = read_throttled(server, source, "broker-1", "producer_byte_rate", time)
    assert found >= {SeriesNames("bob", "web"), SeriesNames("dave", "etl")}
    assert SeriesNames(None, "other") not in found


def test_an_infinite_sample_is_no_rate() -> None:
    """The highest use is a lower bound, so the p95 stands for one that no network has."""
    values = {"quantile_over_time(0.5": "100", "quantile": "200", "max": "+Inf", "count": "10"}

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        value = next(value for form, value in values.items() if asked.query.startswith(form))
        result = [{"metric": {"user": "alice"}, "value": [0, value]}]
        compact = {"status": "success", "data": {"result": result}}
        return Answer(200, json.dumps(compact, separators=(",", ":")))

    time = Time(TIMES["started"], TIMES["ended"])
    with serve(respond) as url, open_prometheus(connect(url)) as server:
        source = UsageSource.of(POLICY, server.connection)
        (row,) = read_use(server, source, "1", "producer_byte_rate", time, interval=5.0)

    assert (row.counted, row.p50, row.p95, row.highest) == (50, 100, 200, 200)


def test_a_key_without_series_has_no_samples(source: UsageSource) -> None:
    """Without a quota of a resource brokers measure nothing, but scrapes are known."""
    assert read_rows(source, "controller_mutation_rate", WHOLE) == []
    assert read_scrapes(source, BROKERS, WHOLE).num_rows > 100


def test_use_is_unknown_if_some_series_have_no_names() -> None:
    """What a cut would have done is not concluded from labels that lose the names of clients."""
    now = TIMES["ended"]
    some = [{"metric": {"instance": "broker-1"}, "value": [0, "1"], "values": []}]

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        queries.append('user=""' in asked.query)
        return Answer(200, json.dumps({"status": "success", "data": {"result": some}}))

    queries: list[bool] = []
    with serve(respond) as url, pytest.raises(UseUnknown, match="have no names of clients"):
        read_samples(
            UsageSource.of(POLICY, connect(url)),
            "producer_byte_rate",
            {SeriesNames("alice", None)},
            Time(now - timedelta(days=7), now),
        )

    assert queries == [False, True]
