"""Use of 10,000 series: a day of a real Prometheus, 30 days of digests, the review of 50 cuts."""

import random
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.compute as pc

from quota_ops.model.quotas.tables import ACTUAL
from quota_ops.model.usage.digest import DIGEST
from quota_ops.store.history.digests import find_digests, list_past_days, write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import latest_first
from tests.benchmarks import inputs
from tests.benchmarks.against_bare import ALLOW, SMALL
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Sample, Spread, pair
from tests.usage.lab import start_prometheus
from tests.usage.past import leave_look

USERS = SMALL // 2
STEP = 60
PART = 50
"""Samples of a series in one request: Prometheus takes no series that is an hour behind others."""
AT_ONCE = 500
CUTS = 50
LABELS = {"cluster": "bench", "instance": "broker-1:9404"}
Labels = dict[str, str]
_ALLOW = (*ALLOW, "--allow", "policy_changed")


def usage(bench: Bench) -> Iterator[Row]:
    """Measure use of 5,000 producers and 5,000 consumers, each with a limit."""
    inputs.write_cluster(bench.cluster, bench.broker.config.cluster_id)
    inputs.write_quotas(bench.cluster, SMALL)
    bench.quota_ops("reconcile", "bench", *ALLOW)
    with start_prometheus(
        bench.home / "prometheus", {}, flags=["--web.enable-remote-write-receiver"], cores=2
    ) as server:
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        today = now.replace(hour=0, minute=0) - timedelta(minutes=1)
        measured = list(_list_series())
        changed = [labels for labels in measured if int(labels["user"][5:]) < CUTS]
        some = [_UP, *changed]
        _write(server.url, some, today - timedelta(days=8), today - timedelta(days=1))
        _write(server.url, [_UP, *measured], today - timedelta(days=1), now)
        connection = bench.home / "prometheus.properties"
        connection.write_text(f"url={server.url}\n")
        environment = {"QUOTA_OPS_CONNECTION_PROMETHEUS": str(connection)}
        policy = bench.cluster / "cluster.yaml"
        policy.write_text(
            policy.read_text() + "usage: {prometheus: prometheus, match: {cluster: bench}}\n"
        )
        bench.quota_ops("reconcile", "bench", *_ALLOW)
        _leave_look(bench, today - timedelta(days=40))
        look = partial(bench.quota_ops, "usage", "bench", **environment)
        yield from _list_rows("usage of 10,000 series, one day", look, ("--days", "1"), bench, 20)
        yield _measure_review(bench, environment)
        bench.quota_ops("record", "bench", "--days", "1", **environment)
    size = _repeat_day(bench)
    whole = size * 30 * 6 / 1e6
    yield Row("digests of 60,000 series, 30 days", f"{whole:.0f} MB", "under 100 MB", whole < 100)
    days = ("--recorded", "--days", "30")
    yield from _list_rows("usage of 10,000 series, 30 recorded days", look, days, bench, 3)


def _leave_look(bench: Bench, at: datetime) -> None:
    """Leave a run that read the same quotas long ago, so that the limits of all days are known."""
    store = RunStore(open_place(bench.home / "store"))
    newest = RunFolder(next(latest_first(store, store.runs("bench"))))
    state: dict[str, dict[str, float | None]] = defaultdict(dict)
    for row in newest.read_rows(ACTUAL):
        state[row.entity][row.key] = row.value
    cluster_id = bench.broker.config.cluster_id
    leave_look(store, at, state, brokers=1, cluster="bench", cluster_id=cluster_id)


def _list_rows(
    what: str, look: partial[Sample], options: Sequence[str], bench: Bench, target: float
) -> Iterator[Row]:
    samples = [look(*options) for _ in range(bench.runs)]
    wall, cpu = (Spread.of([getattr(each, name) for each in samples]) for name in ("wall", "cpu"))
    peak = max(sample.peak for sample in samples)
    words = f"{wall.text(' s')}, CPU {cpu.median:.2f} s"
    yield Row(what, words, f"under {target:g} s", wall.median < target)
    yield Row("the same, peak memory", f"{peak:.0f} MB", "under 300 MB", peak < 300)


def _measure_review(bench: Bench, environment: dict[str, str]) -> Row:
    """Return what use adds to a plan with 50 cuts."""
    inputs.write_quotas(bench.cluster, SMALL, moved=2 * USERS // CUTS, step=-600_000)
    policy = bench.cluster / "cluster.yaml"
    text = policy.read_text()

    def plan(*, has_usage: bool) -> Sample:
        policy.write_text(text if has_usage else text[: text.index("usage:")])
        return bench.quota_ops("plan", "bench", *_ALLOW, **environment)

    found = pair(partial(plan, has_usage=True), partial(plan, has_usage=False), bench.runs)
    wall, other = found.spread("wall"), found.spread("wall", other=True)
    added, peak = wall.median - other.median, found.spread("peak").high
    words = f"{added:.2f} s more than {other.median:.2f} s, peak {peak:.0f} MB"
    inputs.write_quotas(bench.cluster, SMALL)
    policy.write_text(text)
    return Row("plan with 50 cuts: what use adds", words, "5 s, 300 MB", added < 5 and peak < 300)


def _repeat_day(bench: Bench) -> int:
    """Store the recorded day as each of 30 days, with other rates; return the bytes of a day."""
    store = RunStore(open_place(bench.home / "store"))
    cluster_id = bench.broker.config.cluster_id
    days = list_past_days(datetime.now(UTC), 30)
    (place,) = find_digests(store, cluster_id, days[-1:]).values()
    size = next(leaf.size for leaf in place.parent.walk() if leaf.path == place.name)
    digest = parquet.from_bytes(DIGEST, read_file(place), str(place))
    for number, day in enumerate(days[:-1]):
        moved = pc.add(digest["bucket"], pa.scalar(number % 7 - 3, pa.int32()))
        rows = digest.set_column(digest.column_names.index("bucket"), "bucket", moved)
        names = pa.array([day] * len(rows), pa.string())
        write_digest(store, cluster_id, day, rows.set_column(0, "day", names))
    return size


_UP: Labels = {"__name__": "up", **LABELS}


def _list_series() -> Iterator[Labels]:
    for number in range(USERS):
        user = f"user-{number:06d}"
        name = {"__name__": "kafka_server_quota_byte_rate", "user": user, **LABELS}
        yield {**name, "clientId": f"app-{number % 100}", "resource": "Produce"}
        yield {**name, "resource": "Fetch"}


def _write(url: str, series: Sequence[Labels], start: datetime, end: datetime) -> None:
    """Write a sample a minute of each series by remote write, a part of the time after the other.

    A third of the clients is idle, and rates of others are log-normal.
    """
    chance = random.Random(1)  # noqa: S311 - a load
    noise = [chance.lognormvariate(0, 0.75) for _ in range(10_007)]
    levels = [chance.choice((0, 1, 1)) * chance.lognormvariate(11, 1) for _ in series]
    heads = [_encode_labels(labels) for labels in series]
    count = int((end - start).total_seconds() / STEP)
    times = [int(start.timestamp() + STEP * at) * 1000 for at in range(count)]
    for at in range(0, count, PART):
        stamps = [b"\x10" + _encode_number(time) for time in times[at : at + PART]]
        form = "<" + "3sd7s" * len(stamps)
        for first in range(0, len(series), AT_ONCE):
            body = bytearray()
            for number in range(first, min(first + AT_ONCE, len(series))):
                offset = (number * 7919 + at * 31) % (len(noise) - PART)
                level = levels[number]
                values = [level * each for each in noise[offset : offset + len(stamps)]]
                if series[number] is _UP:
                    values = [1.0] * len(stamps)
                head = b"\x12\x10\x09"
                parts = chain.from_iterable(
                    (head, value, stamp) for value, stamp in zip(values, stamps, strict=True)
                )
                one = heads[number] + struct.pack(form, *parts)
                body += b"\x0a" + _encode_number(len(one)) + one
            _send(url, bytes(body))


def _send(url: str, body: bytes) -> None:
    data = pa.compress(body, codec="snappy", asbytes=True)
    headers = {
        "Content-Encoding": "snappy",
        "Content-Type": "application/x-protobuf",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
    }
    sent = Request(f"{url}/api/v1/write", data=data, headers=headers)  # noqa: S310 - loopback
    urlopen(sent, timeout=120).close()  # noqa: S310 - loopback


def _encode_labels(labels: Labels) -> bytes:
    """Return the labels of a series as Prometheus' remote write encodes them, sorted."""
    found = bytearray()
    for name, value in sorted(labels.items()):
        texts = (name.encode(), value.encode())
        one = b"".join(
            tag + _encode_number(len(text)) + text
            for tag, text in zip((b"\x0a", b"\x12"), texts, strict=True)
        )
        found += b"\x0a" + _encode_number(len(one)) + one
    return bytes(found)


def _encode_number(number: int) -> bytes:
    """Return a number as a varint of protobuf."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)
