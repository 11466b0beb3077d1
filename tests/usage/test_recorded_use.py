"""Recorded days beside limits: the command `usage --recorded`, and the page of a run."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
from click.testing import CliRunner

from quota_ops import cli
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage.recorded import RecordedQuota, RecordedUse
from quota_ops.report.page.use import describe_use, list_use, note_use
from quota_ops.stages.report import recorded_use
from quota_ops.stages.report.recorded_use import read_recorded_use
from quota_ops.store.history.digests import find_digests
from quota_ops.store.places.run_store import RunStore, open_place
from tests.usage.busy_hour import BusyHour
from tests.usage.past import leave_look
from tests.usage.recording import Answer, Question, serve
from tests.usage.scenario import CLUSTER_ID
from tests.writing import State

NOW = datetime(2026, 11, 26, 4, 0, tzinfo=UTC)
BUSY = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
KEY = "producer_byte_rate"
CLUSTER = f"""\
cluster_id: {CLUSTER_ID}
connection: demo
usage: {{prometheus: monitoring, match: {{cluster: demo}}}}
"""
OWNERS = {"user=etl": "payments"}
EXPECTED = """\
orders from 2026-11-23T00:00:00Z to 2026-11-26T00:00:00Z, seen 66 % of the time
  kafka-1:9404 was not seen for 24 h.

entity  key  limit  p95  share of the limit  at limit  highest seen  owner  note
user=etl  producer_byte_rate  1 MB/s  97.7 kB/s  █▏  10 %  1 to 2 h  900 kB/s  payments  \
share of the limit then, 900 kB/s, p95 of the 24 h with this limit

1 quota of 1; use is shown for the busiest client on its busiest broker, not added up.
Scraped every 60 s: shorter peaks are not seen, so the highest is a lower bound.
2 days of this time are recorded: there, rates are exact to 2.5 %, and the highest limit of a day \
counts for all of it.
Limits are as they were at that time; since 2026-11-25T13:00:00Z no run has read them.
"""


@pytest.fixture(name="recorded", scope="module")
def _recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record 23 and 25 November; etl had 900 kB/s, and 1 MB/s since the 25th."""
    root = tmp_path_factory.mktemp("recorded")
    (root / "state/orders").mkdir(parents=True)
    (root / "state/orders/cluster.yaml").write_text(CLUSTER)
    with pytest.MonkeyPatch.context() as patch, time_machine.travel(NOW, tick=False):
        changed = NOW - timedelta(hours=15)
        for at, limit in ((BUSY, 900_000), (changed - DAY, 900_000), (changed, 1_000_000)):
            look = {"user=etl": {KEY: limit}}
            leave_look(RunStore(open_place(root / "store")), at, look, owners=OWNERS, brokers=1)
        enter(root, patch)
        with serve(BusyHour(BUSY.timestamp()).respond) as url:
            Path("monitoring.properties").write_text(f"url={url}\n")
            for day in ("2026-11-23", "2026-11-25"):
                assert call("record", "--day", day)[0] == 0
    return root


@pytest.fixture
def store(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    """Return a copy of the run store with the recorded days, in the folder of commands."""
    shutil.copytree(recorded, tmp_path, dirs_exist_ok=True)
    enter(tmp_path, monkeypatch)
    with time_machine.travel(NOW, tick=False):
        yield RunStore(open_place(tmp_path / "store"))


def enter(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Run commands in a folder that has a state, a store and a connection."""
    patch.chdir(root)
    patch.setenv("QUOTA_OPS_CONNECTION_MONITORING", str(root / "monitoring.properties"))


def call(command: str, *options: str) -> tuple[int, str]:
    """Return the exit code of a command and what it prints."""
    args = [command, "orders", "--desired-state", "state", "--run-store", "store", *options]
    ran = CliRunner().invoke(cli.main, args)
    return ran.exit_code, ran.output


@pytest.mark.usefixtures("store")
def test_recorded_days_are_read_without_a_server() -> None:
    """A missing day counts as not seen, and a changed limit makes the time at it a range."""
    code, output = call("usage", "--days", "3", "--recorded")

    assert code == 0
    assert re.sub(r" {2,}", "  ", output) == EXPECTED


def test_a_damaged_day_is_named_and_left_out(store: RunStore) -> None:
    """The other days are shown, a damaged one counts as not seen, and the exit code is 2."""
    (damaged,) = find_digests(store, CLUSTER_ID, ["2026-11-25"]).values()
    Path(str(damaged)).write_bytes(Path(str(damaged)).read_bytes()[:500])

    code, output = call("usage", "--days", "3", "--recorded")

    assert (code, output.splitlines()[0]) == (
        2,
        "orders from 2026-11-23T00:00:00Z to 2026-11-26T00:00:00Z, seen 33 % of the time",
    )
    assert re.search(r"^user=etl .* 10 % ", output, re.MULTILINE)
    (trouble,) = [line for line in output.splitlines() if line.startswith("not counted: ")]
    assert trouble.startswith(f"not counted: {damaged} cannot be read as a Parquet file: ")
    assert trouble.endswith(": quota-ops record orders --day 2026-11-25 records it again")
    assert "Where no command is shown, read a file of another version" in output

    alone = call("usage", "--days", "1", "--recorded")
    assert (alone[0], re.sub(r" {2,}", "  ", alone[1]).splitlines()[1:5]) == (
        2,
        [
            "  No day of that time is recorded and can be read: use is unknown.",
            "",
            "entity  key  limit  p95  share of the limit  at limit  highest seen  owner  note",
            (
                "user=etl  producer_byte_rate  1 MB/s  payments  unknown: no day of that time is "
                "recorded and can be read"
            ),
        ],
    )


@pytest.mark.usefixtures("store")
def test_recorded_days_and_the_hours_since_have_one_p95() -> None:
    """A client that was busy for 2 of 28 hours has their rate as its p95, also if 4 are recent."""
    later = NOW + DAY
    with (
        time_machine.travel(later, tick=False),
        serve(BusyHour((later - timedelta(hours=2)).timestamp()).respond) as url,
    ):
        Path("monitoring.properties").write_text(f"url={url}\n")
        assert call("record", "--day", "2026-11-26")[0] == 0
        code, output = call("usage", "--days", "1")

    assert code == 0
    (row,) = [text for text in output.splitlines() if text.startswith("user=etl")]
    assert re.split(r" {2,}", row)[2:6] == ["1 MB/s", "900 kB/s", "█████████", "90 %"]
    assert "Of the other time, only p50, p95 and the highest are known" in output


def test_brokers_that_were_seen_in_turn_were_never_seen_together(store: RunStore) -> None:
    """Seen is the time in which all brokers were, by a recorded day and by Prometheus."""
    later, busy = NOW + DAY, BusyHour(BUSY.timestamp())
    leave_look(store, NOW, {"user=etl": {KEY: 1_000_000}}, brokers=2)

    def respond(asked: Question, headers: Mapping[str, str]) -> Answer:
        found = json.loads(busy.respond(asked, headers).body)
        result = found["data"]["result"]
        if asked.query.startswith("count by (instance"):
            result += [{**result[0], "metric": {"instance": "kafka-2:9404"}}]
        elif asked.query.startswith("up{") and "instance=" in asked.query:
            turn = "kafka-2" in asked.query
            values = result[0]["values"]
            result[0]["values"] = [[at, str(int(at // 600 % 2 == turn))] for at, _ in values]
        return Answer(200, json.dumps(found))

    with time_machine.travel(later, tick=False), serve(respond) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        recorded = call("record", "--day", "2026-11-26")[1]
        text, values = call("usage", "--days", "1"), call("usage", "--days", "1", "--format=json")

    assert recorded.splitlines()[1] == "2026-11-26  1        2        0 %"
    assert (text[0], text[1].splitlines()[:3]) == (
        0,
        [
            "orders from 2026-11-26T00:00:00Z to 2026-11-27T04:00:00Z, seen 0 % of the time",
            "  kafka-1:9404 was not seen for 14 h.",
            "  kafka-2:9404 was not seen for 14 h.",
        ],
    )
    found = json.loads(values[1])
    assert found["coverage"] == {"kafka-1:9404": 0.5, "kafka-2:9404": 0.5}
    assert found["seen"] == 0


def test_time_without_any_series_of_a_key_proves_nothing(store: RunStore) -> None:
    """If the rules of the exporter lose a key in the last hours, no quota of it is unused."""
    for at in (BUSY, NOW - DAY - timedelta(hours=15), NOW - timedelta(hours=15)):
        leave_look(store, at, {"user=idle": {KEY: 1e6}}, brokers=1)
    busy = BusyHour(BUSY.timestamp())

    def respond(asked: Question, headers: Mapping[str, str]) -> Answer:
        is_lost = float(asked.time) > (NOW - timedelta(hours=4)).timestamp()
        unknown = asked._replace(query=asked.query.replace("Produce", "")) if is_lost else asked
        return busy.respond(unknown, headers)

    with serve(respond) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        code, output = call("usage", "--days", "1")

    assert (code, output.splitlines()[0]) == (
        0,
        "orders from 2026-11-25T00:00:00Z to 2026-11-26T04:00:00Z, seen 100 % of the time",
    )
    assert f"\n  {KEY} has no series in 4 h of that time: " in output
    assert re.search(r"^user=idle .* no use seen$", output, re.MULTILINE)
    for shown in (output, call("usage", "--days", "1", "--recorded")[1]):
        assert f"\n1 client used {KEY} without a limit.\n" in shown


def test_throttling_belongs_to_the_quota_of_that_time(store: RunStore) -> None:
    """A client that a new quota throttles was not throttled by the default that it used before."""
    default = {"user=<default>": {KEY: 100_000_000_000}}
    for minutes, own in ((180, {}), (120, {}), (119, {"user=etl": {KEY: 1_000_000}})):
        leave_look(store, NOW - timedelta(minutes=minutes), default | own, brokers=1)
    throttled_at = (NOW - timedelta(minutes=60)).timestamp()
    with serve(BusyHour(BUSY.timestamp(), throttled_at=throttled_at).respond) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        _, output = call("usage", "--days", "1", "--format", "json")

    throttled = {
        str(quota["entity"]): [client["throttled"] for client in quota["clients"]]
        for quota in json.loads(output)["quotas"]
    }
    assert throttled == {"{'user': None}": [False], "{'user': 'etl'}": [True]}


def test_a_recorded_day_with_two_limits_does_not_show_which_one_throttled(store: RunStore) -> None:
    """A client that its default throttled, before it got its own quota, may have reached either."""
    default, own = {"user=<default>": {KEY: 50_000}}, {"user=etl": {KEY: 10_000_000}}
    for minutes, state in ((-60, default), (480, default), (481, default | own)):
        leave_look(store, NOW + timedelta(minutes=minutes), state, brokers=1)
    throttled_at = (NOW + timedelta(hours=4)).timestamp()
    with (
        serve(BusyHour(BUSY.timestamp(), throttled_at=throttled_at).respond) as url,
        time_machine.travel(NOW + 2 * DAY, tick=False),
    ):
        Path("monitoring.properties").write_text(f"url={url}\n")
        assert call("record", "--days", "2")[0] == 0
        suggested = call("suggest", "--days", "2")[1]
        shown = call("usage", "--days", "2", "--recorded")[1]

    row, reason = (
        re.split(r" {2,}", line)
        for output in (shown, suggested)
        for line in output.splitlines()
        if line.startswith("user=etl")
    )
    assert reason[3:] == ["its clients may have reached it, so how much they need is unknown"]
    assert row[2:] == [
        *("10 MB/s", "97.7 kB/s", "▏", "0 %", "up to 24 h", "900 kB/s"),
        "p95 of the 24 h with this limit",
    ]


def test_who_is_throttled_now_is_listed(store: RunStore) -> None:
    """The clients that brokers throttle at this moment are listed with their limit and owner.

    If some have no names, the labels are wrong, and those of others may be.
    """
    respond = BusyHour(BUSY.timestamp()).respond

    def lose_names(asked: Question, headers: Mapping[str, str]) -> Answer:
        query = asked.query.replace(',user=""', "").replace(',clientId=""', "")
        body = respond(asked._replace(query=query), headers).body
        return Answer(200, body.replace('"user": "etl", ', ""))

    def add_broker(answer: Answer) -> Answer:
        found = json.loads(answer.body)
        labels = {"instance": "other-9:9404"}
        for series in list(found["data"]["result"]):
            found["data"]["result"].append(series | {"metric": series["metric"] | labels})
        return Answer(200, json.dumps(found))

    with serve(respond) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        text, values = call("usage", "--now"), call("usage", "--now", "--format", "json")
    with serve(lambda *asked: add_broker(respond(*asked))) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        more = call("usage", "--now")
        leave_look(store, NOW, {"user=etl": {KEY: 1_000_000}}, owners=OWNERS, hosts=["kafka-1"])
        named = call("usage", "--now")
    with serve(lose_names) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        lost = call("usage", "--now", "--format", "csv")
    away = call("usage", "--now")

    assert (text[0], re.sub(r" {2,}", "  ", text[1])) == (
        0,
        (
            "client  key  limit  quota  owner  mean delay  broker\n"
            "user=etl  producer_byte_rate  1 MB/s  user=etl  payments  690 ms  kafka-1:9404\n\n"
            "1 client was throttled in the minute before 2026-11-26 04:00 UTC; the labels of the "
            "scraped brokers do not show whether they are of this cluster. A delay is the mean of "
            "the throttled responses, not a share of time.\n"
        ),
    )
    assert json.loads(values[1])["clients"][0]["wait"] == 689.6
    shown = "1 client was throttled in the minute before 2026-11-26 04:00 UTC; "
    unknown = "2 brokers were scraped and 1 registered: match may select another cluster, whose "
    assert more[1].splitlines()[-1].startswith(f"{shown}{unknown}use is counted here, or a broker")
    unknown = "of other-9:9404, which no run found registered, it is not known whether their "
    assert named[1].splitlines()[-1].startswith(f"{shown}{unknown}clients are of this cluster. A ")
    why = f"some series of throttle times of {KEY} have no names of clients, so all of them may be"
    remedy = "  Run usage --probe: it shows the labels that they have.\n"
    assert lost == (6, f"{why} of others\n{remedy}")
    assert (away[0], "cannot be reached" in away[1]) == (6, True)


def test_recorded_days_keep_series_without_numbers_or_names(store: RunStore) -> None:
    """A quota is not unused if its samples were NaN, or its client's name was lost."""
    busy = BusyHour(BUSY.timestamp())

    def respond(asked: Question, headers: Mapping[str, str]) -> Answer:
        answer = busy.respond(asked, headers)
        if asked.query.startswith("count by (user"):
            labels = {"user": "nan"} if "Produce" in asked.query else {}
            count = {"metric": labels, "value": [0, "1"]}
            found = [count, *json.loads(answer.body)["data"]["result"]]
            return Answer(200, json.dumps({"status": "success", "data": {"result": found}}))
        if "kafka_server_quota_byte_rate" not in asked.query or not asked.query.endswith("ms]"):
            return answer
        produced = asked._replace(query=asked.query.replace("Fetch", "Produce"))
        (etl,) = json.loads(busy.respond(produced, headers).body)["data"]["result"]
        broker = {"instance": "kafka-1:9404"}
        if 'resource="Fetch"' in asked.query:
            found = [{"metric": broker, "values": etl["values"]}]
        else:
            no_numbers = [[at, "NaN"] for at, _ in etl["values"]]
            found = [etl, {"metric": {"user": "nan", **broker}, "values": no_numbers}]
        return Answer(200, json.dumps({"status": "success", "data": {"result": found}}))

    state: State = {
        **{f"user={name}": {KEY: 9e5} for name in ("etl", "nan", "idle")},
        "user=lost": {"consumer_byte_rate": 9e5},
    }
    for at in (BUSY, NOW - DAY - timedelta(hours=15), NOW - timedelta(hours=15)):
        leave_look(store, at, state, brokers=1)
    with serve(respond) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        recorded = call("record", "--days", "3", "--format", "json")
        for day in ("2026-11-23", "2026-11-25"):
            call("record", "--day", day)
    code, output = call("usage", "--days", "3", "--recorded", "--format", "json")
    near = call("usage", "--days", "3", "--recorded", "--near", "5")

    assert (recorded[0], code) == (0, 0)
    assert "1 quota of 4, and the use of 1 more is unknown; use is shown" in near[1]
    values = json.loads(output)
    assert values["coverage"] == {"kafka-1:9404": 1.0}
    told = {
        quota["entity"]["user"]: (quota["verdict"], quota["reason"]) for quota in values["quotas"]
    }
    assert told == {
        "etl": ("used", None),
        "idle": ("unused", None),
        "nan": ("no use seen", "its samples are no numbers (NaN)"),
        "lost": (
            "unknown",
            "its series have no names of clients: the exporter or a scrape rule drops them",
        ),
    }


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("command", [("usage",), ("suggest",)])
def test_a_prometheus_that_measures_nothing_is_no_success(command: tuple[str, ...]) -> None:
    """If no scrape of the brokers is found, the result is shown and the exit code is 6."""
    empty = Answer(200, json.dumps({"status": "success", "data": {"result": []}}))
    with serve(lambda _asked, _headers: empty) as url:
        Path("monitoring.properties").write_text(f"url={url}\n")
        code, output = call(*command, "--days", "1", "--run-store", "nothing")
    assert (code, output.splitlines()[-2:]) == (
        6,
        ["the use of orders is unknown", "  Run quota-ops usage orders --probe to see why."],
    )


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("option", ["--unused", "--near=80"])
def test_a_list_without_any_known_use_is_not_taken_for_an_empty_one(option: str) -> None:
    """If the use of no quota is known, a list of some of them exits with 6 and says so."""
    nothing = RunStore(open_place(Path("nothing")))
    leave_look(nothing, BUSY, {"user=etl": {KEY: 9e5}}, brokers=1)

    code, output = call("usage", "--recorded", option, "--run-store", "nothing")

    assert (code, output.splitlines()[-2:]) == (
        6,
        [
            (
                "the use of orders is unknown, so this list does not show who is near a limit, or "
                "what is unused"
            ),
            "  Run quota-ops record orders, which stores the use of past days.",
        ],
    )


def test_a_page_shows_recorded_days_beside_the_limits_of_its_run(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page has the nearest quotas, a share for each day, and nothing for a missing day."""
    stored = [("user=etl", KEY, 1_000_000.0), ("user=bob", KEY, 5.0)]
    owners = {(Entity.parse("user=etl"), KEY): "payments"}

    found = read_recorded_use(store, CLUSTER_ID, stored, lambda: owners, NOW)
    size = max(leaf.size for leaf in store.of_cluster(CLUSTER_ID).digests.walk())
    held = read_recorded_use(store, CLUSTER_ID, [("user=etl", KEY, 927_800.0)], dict, NOW)
    monkeypatch.setattr(recorded_use, "MOST_BYTES", size)
    newest = read_recorded_use(store, CLUSTER_ID, stored, lambda: owners, NOW)

    assert found is not None
    (quota,) = found.nearest
    assert found == RecordedUse(("2026-11-23", "2026-11-24", "2026-11-25"), 2, 1.0, 1, (quota,))
    assert quota == RecordedQuota(
        *("user=etl", KEY, "payments", 1_000_000.0, "user=etl", 1, quota.p95, 900_000.0),
        share=quota.p95 / 1_000_000,
        at_limit_least=0.0,
        at_limit=0.0,
        throttled=False,
        days=(quota.share, None, quota.share),
    )
    assert quota.p95 == pytest.approx(100_000, rel=0.025)
    assert note_use(found) == {("user=etl", KEY): f"p95 █ {int(100 * quota.share)} % of 1 MB/s"}
    (line,) = list_use(found)
    assert (line.cells[2:], line.percent, line.mark) == (
        ("1 MB/s", line.cells[3], "0", "900 kB/s"),
        f"{int(100 * quota.share)} %",
        "",
    )
    assert describe_use(found).startswith(
        "2 recorded days from 2026-11-23 to 2026-11-25 (UTC), all brokers seen in 100 % of them"
    )
    assert held is not None
    (line,) = list_use(held)
    # 97 % of this limit and the busy hours are in one bucket, so nobody knows which is higher.
    assert (line.cells[4], line.mark) == ("up to 2 h", "perhaps at it")
    assert newest is not None
    assert newest.days == ("2026-11-25",)
    assert read_recorded_use(store, "another", stored, lambda: owners, NOW) is None
    digests = find_digests(store, CLUSTER_ID, found.days)
    assert len(digests) == 2
    monkeypatch.setattr(recorded_use, "MOST_BYTES", 2 * size)
    Path(str(digests["2026-11-25"])).write_bytes(b"")
    left = read_recorded_use(store, CLUSTER_ID, stored, lambda: owners, NOW)
    assert left is not None
    assert (left.days, left.recorded, left.seen) == (("2026-11-23",), 1, 1.0)
    damaged = "1 recorded day from 2026-11-23 to 2026-11-23 (UTC), 1 more cannot be read ("
    assert describe_use(left).startswith(damaged)
    Path(str(digests["2026-11-23"])).write_bytes(b"")
    assert read_recorded_use(store, CLUSTER_ID, stored, lambda: owners, NOW) is None
