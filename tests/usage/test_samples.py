"""Samples of a recorded Prometheus, whose brokers and clients were real."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import pytest

from quota_ops.model.errors import UseUnknown
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.stages.plan.use import read_samples
from quota_ops.usage.overview import read_throttled, read_use
from quota_ops.usage.prometheus import open_prometheus
from quota_ops.usage.samples import join_samples, list_brokers, read_parts
from quota_ops.usage.source import SAMPLES, SCRAPES, UsageSource
from tests.usage.conftest import POLICY, connect, read_times
from tests.usage.recording import Answer, Question, serve
from tests.usage.scenario import ENCODED, QUOTED

TIMES = read_times()
BROKERS = ("broker-1", "broker-2")


def test_samples_have_the_names_that_kafka_knows(source: UsageSource) -> None:
    """Names are decoded, each as the level of its quota counted it at that time."""
    assert list_brokers(source, TIMES["started"], TIMES["ended"]) == BROKERS
    found = join_samples(
        read_parts(source, BROKERS, "producer_byte_rate", TIMES["started"], TIMES["ended"])
    )
    assert (found.rates.schema, found.up.schema) == (SAMPLES, SCRAPES)
    columns = [found.rates[name].to_pylist() for name in ("user_name", "client_id")]
    assert set(zip(*columns, strict=True)) == {
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
    assert found.rates["value"].null_count == 0
    assert set(found.rates["key"].to_pylist()) == {"producer_byte_rate"}


def test_a_frozen_broker_is_unknown_not_idle(source: UsageSource) -> None:
    """While a broker does not respond, its scrapes fail and it has no samples."""
    found = join_samples(
        read_parts(source, BROKERS, "producer_byte_rate", TIMES["started"], TIMES["ended"])
    )
    failed = [row for row in found.up.to_pylist() if not row["up"]]
    assert {row["broker"] for row in failed} == {"broker-2"}
    frozen = TIMES["down"], TIMES["up"] + timedelta(seconds=6)
    assert all(frozen[0] <= row["time"] <= frozen[1] for row in failed)
    assert len(failed) >= (TIMES["up"] - TIMES["down"]).seconds // source.step - 1
    within = [
        row["broker"]
        for row in found.rates.to_pylist()
        if failed[0]["time"] <= row["time"] <= failed[-1]["time"]
    ]
    assert set(within) == {"broker-1"}


def test_a_selection_reads_its_series_only(source: UsageSource) -> None:
    """Only the selected names are read, also those with special characters, and no neighbor."""
    wanted = [SeriesNames(ENCODED, None), SeriesNames(None, QUOTED), SeriesNames("bob", "web")]
    everything, some = (
        join_samples(
            read_parts(
                source,
                BROKERS,
                "producer_byte_rate",
                TIMES["down"],
                TIMES["ended"],
                selection=names,
            )
        ).rates.to_pylist()
        for names in (None, wanted)
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
        join_samples(
            read_parts(source, BROKERS, "request_percentage", start, end)
        ).rates.to_pylist()
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
    found = join_samples(
        read_parts(source, BROKERS, "controller_mutation_rate", TIMES["started"], TIMES["ended"])
    )
    assert (found.rates.num_rows, found.up.num_rows > 100) == (0, True)


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
