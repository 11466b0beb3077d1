"""A real Prometheus with the use of a week: the same days and delays as the computed one."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quota_ops.model.quotas.entity import USER, Entity
from quota_ops.model.usage.digest import DelayRow, UseRow
from quota_ops.model.usage.series import SeriesNames, Time
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.runs.digests import digest_days
from quota_ops.sql.embedded_usage import find_delays
from quota_ops.stages.plan.throttling import Group, list_shares
from quota_ops.stages.plan.use import read_samples
from quota_ops.store.history.digests import list_past_days
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.usage.connection import find_prometheus
from quota_ops.usage.overview import read_throttle_times
from quota_ops.usage.samples import find_throttled_series
from quota_ops.usage.source import UsageSource
from tests.usage.busy_hour import BusyHour
from tests.usage.lab import start_prometheus
from tests.usage.recorded import read_use
from tests.usage.recording import serve

POLICY = UsagePolicy("monitoring", match=(("cluster", "demo"),))
KEY = "producer_byte_rate"
DAYS = 8
GROUP = Group(Entity.of({USER: "etl"}), 500_000.0, 1_000_000.0, (SeriesNames("etl", None),))


def write_blocks(busy: BusyHour, now: datetime, home: Path) -> None:
    """Write the samples of some days as blocks of a Prometheus."""
    end = int(now.timestamp()) // 60 * 60
    times = range(end - DAYS * 24 * 60 * 60, end, 60)
    scraped = 'cluster="demo",instance="kafka-1:9404"'
    produced = f'resource="Produce",user="etl",{scraped}'
    lines = [
        "# TYPE up gauge",
        *(f"up{{{scraped}}} 1 {second}" for second in times),
        "# TYPE kafka_server_quota_byte_rate gauge",
        *(
            f"kafka_server_quota_byte_rate{{{produced}}} {busy.find_rate(second)} {second}"
            for second in times
        ),
        "# TYPE kafka_server_quota_throttle_time gauge",
        *(
            f"kafka_server_quota_throttle_time{{{labels}}} {wait} {second}"
            for user, wait in (("etl", "689.6"), ("web", "NaN"), ("zero", "0"))
            for labels in (produced.replace("etl", user),)
            for second in times[-5:]
        ),
        "# EOF",
    ]
    home.mkdir()
    (home / "use.txt").write_text("\n".join([*lines, ""]), encoding="ascii")
    backfill = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*backfill, home / "use.txt", home / "data"], check=True, capture_output=True)


@pytest.mark.matrix
def test_a_real_prometheus_has_the_same_days_and_delays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded days, delays and throttled clients of a real Prometheus are those of its samples."""
    now = datetime.now(UTC)
    busy = BusyHour((now - timedelta(hours=6)).timestamp())
    write_blocks(busy, now, tmp_path / "prometheus")
    connection, end = tmp_path / "monitoring.properties", now - timedelta(minutes=5)
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_MONITORING", str(connection))

    def read(url: str, name: str) -> tuple[list[UseRow], list[DelayRow]]:
        connection.write_text(f"url={url}\n")
        store, days = RunStore(open_place(tmp_path / name)), list_past_days(now, 3)
        source = UsageSource.of(POLICY, find_prometheus("monitoring"))
        digest_days(store, "id", source, days)
        samples = read_samples(source, KEY, GROUP.series, Time(end - timedelta(days=7), end))
        found = find_delays(*samples[:2], list_shares(KEY, [GROUP]), POLICY.step)
        return read_use(store, "id", days), found

    with start_prometheus(tmp_path / "prometheus", {}) as real:
        from_real = read(real.url, "real")
        source = UsageSource.of(POLICY, find_prometheus("monitoring"))
        throttled = read_throttle_times(source, now - timedelta(minutes=1), 5.0)
        names = {SeriesNames(user, None) for user in ("etl", "web", "zero")}
        week = Time(now - timedelta(days=7), now)
        held_back = find_throttled_series(source, ["kafka-1:9404"], KEY, week, names)
    with serve(busy.respond) as url:
        computed = read(url, "computed")

    assert from_real == computed
    assert held_back == {SeriesNames("etl", None)}
    assert throttled == (
        {"kafka-1:9404"},
        {(KEY, SeriesNames("etl", None)): ("kafka-1:9404", 689.6)},
    )
    (delays,) = from_real[1]
    assert (delays.seen, delays.least, delays.highest) == (
        [(0, 7 * 86400)],
        7 * (3600 - 60),
        900_000,
    )
