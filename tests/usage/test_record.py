"""`record` keeps the use of past days, and never counts a day that it could not read."""

from datetime import UTC, datetime, timedelta
from math import isclose
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops import cli
from quota_ops.model.quotas.tables import ACTUAL
from quota_ops.model.usage.digest import DIGEST, DigestRow
from quota_ops.store.history.digests import find_digests, list_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.retention import find_expired, remove
from quota_ops.store.run.folder import RunFolder
from tests.usage.busy_hour import BusyHour
from tests.usage.past import leave_look
from tests.usage.recorded import read_use
from tests.usage.recording import Answer, serve

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
CLUSTER = f"""\
cluster_id: {CLUSTER_ID}
connection: demo
usage: {{prometheus: monitoring, match: {{cluster: demo}}}}
"""
NOTHING = Answer(200, '{"status":"success","data":{"resultType":"vector","result":[]}}')


def test_days_are_recorded_once_and_missing_ones_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day without samples stays missing, a recorded one is exact, and prune removes old ones.

    If the newest day is missing, the exit code says so: a scheduled task would go unnoticed. Less
    never replaces more, and a damaged day is recorded again.
    """
    folder, store = tmp_path / "state/demo", RunStore(open_place(tmp_path / "store"))
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(CLUSTER)
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if datetime.now(UTC) - today < timedelta(minutes=10):
        today -= timedelta(days=1)
    days = [f"{today - timedelta(days=ago):%Y-%m-%d}" for ago in (3, 2, 1)]
    connection = tmp_path / "monitoring.properties"
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_MONITORING", str(connection))

    def call(*options: str) -> tuple[int, str]:
        args = ["record", "demo", "--desired-state", str(folder.parent), *options]
        ran = CliRunner().invoke(cli.main, [*args, "--run-store", str(store.root)])
        return ran.exit_code, ran.output

    noon, since = today - timedelta(days=3, hours=-12), today - timedelta(days=2)
    with serve(BusyHour(noon.timestamp(), since.timestamp()).respond) as url:
        connection.write_text(f"url={url}\n")
        first, again = call("--days", "3"), call("--days", "3")
        header = call("--days", "2", "--format", "csv")
        (folder / "cluster.yaml").write_text(CLUSTER.replace("demo}}", "demo}, step: 30s}"))
        less = call("--day", days[2])
        (stored,) = find_digests(store, CLUSTER_ID, days[2:]).values()
        Path(str(stored)).write_bytes(Path(str(stored)).read_bytes()[:500])
        one_day = call("--days", "2")
        (folder / "cluster.yaml").write_text(CLUSTER)
        leave_look(store, today - timedelta(days=9), {}, brokers=0, cluster="demo")
        others = call("--day", days[2])
    with serve(lambda _asked, _headers: NOTHING) as url:
        connection.write_text(f"url={url}\n")
        nothing = call("--day", days[2])
    down = call("--days", "3")

    missing = f"{days[0]} is missing: Prometheus has no scrape of this cluster on that day"
    assert (first[0], first[1].splitlines()) == (
        0,
        [
            "day         clients  brokers  seen",
            f"{days[1]}  1        1        100 %",
            f"{days[2]}  1        1        100 %",
            "",
            missing,
            "Stored the use of demo on 2 days.",
        ],
    )
    assert again == (0, f"{missing}\nStored the use of demo on 0 days.\n")
    assert header == (0, "day,series,brokers,share,why,doubt\n")
    assert less == (
        2,
        (
            f"{days[2]} stays as it is: Prometheus has 49 % of it, and 100 % are stored\n"
            f"  To store less all the same, remove {stored} first.\n"
        ),
    )
    assert one_day == (
        0,
        (
            f"day         clients  brokers  seen\n{days[2]}  1        1        49 %\n\n"
            f"{days[2]}: Scraped every 60 s, but step is 30 s, so at most 50 % of the time counts "
            f"as seen: set step: 60s. Then record it again: quota-ops record demo --day {days[2]}\n"
            "Stored the use of demo on 1 day.\n"
        ),
    )
    doubt = "1 broker was scraped and 0 registered: match may select another cluster, whose "
    assert f"{days[2]}: {doubt}use is counted here, or a broker" in others[1]
    assert (down[0], "cannot be reached" in down[1]) == (6, True)
    why = "Prometheus has no scrape of this cluster on that day"
    assert (nothing[0], nothing[1].splitlines()[-2:]) == (
        6,
        [
            f"the use of demo on {days[2]} is unknown: {why}",
            "  Run quota-ops usage demo --probe to see why.",
        ],
    )
    assert list_days(store, CLUSTER_ID) == days[1:]
    (use,) = read_use(store, CLUSTER_ID, days)
    assert use[:4] == ("kafka-1:9404", "producer_byte_rate", "etl", None)
    assert (use.counted, use.highest, use.throttled) == (2 * 86400, 900_000, False)
    assert isclose(use.p95, 100_000, rel_tol=0.025)
    assert remove(find_expired(store, today - timedelta(days=1)), today) == ()
    assert list_days(store, CLUSTER_ID) == days[2:]


def test_the_limits_of_recorded_days_stay(tmp_path: Path) -> None:
    """The last run before the first kept day stays, because it alone knows the limits of then."""
    store, now = RunStore(open_place(tmp_path / "store")), datetime(2026, 11, 26, tzinfo=UTC)
    for ago in (12, 9, 1):
        leave_look(store, now - timedelta(days=ago), {}, brokers=0, cluster="demo")
    seen = DigestRow("2026-11-23", "1", "producer_byte_rate", None, None, 60, None, (), None, False)
    write_digest(store, CLUSTER_ID, seen.day, parquet.from_rows(DIGEST, [seen]))

    assert remove(find_expired(store, now - timedelta(days=5)), now) == ()

    runs = sorted(store.runs("demo"), key=str)
    assert [RunFolder(run).has(ACTUAL.file) for run in runs] == [False, True, True]
