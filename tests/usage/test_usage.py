"""The command `usage` on a recorded Prometheus, with runs that saw the limits of that time."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import time_machine

from quota_ops.desired.read import read_policy
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.usage import suggestion
from quota_ops.model.usage.series import Time
from quota_ops.model.usage.use import UseOverview, UseVerdict
from quota_ops.runs.past_quotas import read_past_quotas
from quota_ops.runs.usage import read_overview
from quota_ops.stages.use.past_limits import Period
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.usage import samples
from quota_ops.usage.source import UsageSource
from tests.calling import call_cli
from tests.usage.conftest import read_times
from tests.usage.past import leave_look, leave_write
from tests.usage.recording import Answer, Question, read_recorded, serve
from tests.usage.scenario import CLUSTER_ID, ENCODED, LATER, QUOTAS
from tests.writing import State

TIMES = read_times()
PAGE = Path(__file__).parents[2] / "docs/how-to/usage.md"
OWNERS = {"user=alice": "payments"}
HOSTS = ("broker-1", "broker-2")
CLUSTER_YAML = f"""\
cluster_id: {CLUSTER_ID}
connection: orders
usage: {{prometheus: monitoring, match: {{cluster: orders}}, step: 5s}}
"""


@pytest.fixture
def folder(tmp_path: Path, prometheus: str) -> Path:
    """Return a folder with the desired state, the connection and an empty run store."""
    state = tmp_path / "desired_state/orders"
    state.mkdir(parents=True)
    (state / "cluster.yaml").write_text(CLUSTER_YAML)
    (tmp_path / "monitoring.properties").write_text(f"url={prometheus}\n")
    return tmp_path


@pytest.fixture
def store(folder: Path) -> RunStore:
    """Return a run store with looks before the time, and around the change in it."""
    found = RunStore(open_place(folder / "store"))
    leave = partial(leave_look, found, owners=OWNERS, hosts=HOSTS)
    leave(TIMES["started"] - timedelta(hours=30), QUOTAS)
    leave(TIMES["finer"] - timedelta(seconds=10), QUOTAS)
    leave(TIMES["finer"] + timedelta(seconds=1), {**QUOTAS, **LATER})
    return found


@pytest.fixture
def now() -> Iterator[None]:
    """Stop the clock at the end of the recording."""
    with time_machine.travel(TIMES["ended"], tick=False):
        yield


def call(folder: Path, *arguments: str) -> tuple[str, str, int]:
    """Return what the command prints and its exit code."""
    environment = {**os.environ, "QUOTA_OPS_CONNECTIONS": str(folder)}
    days = () if "--probe" in arguments else ("--days", "1")
    options = (*days, "--run-store", str(folder / "store"))
    ended = call_cli(["usage", "orders", *options, *arguments], environment, folder)
    return ended.stdout, ended.stderr, ended.returncode


@pytest.mark.usefixtures("store", "now")
def test_the_screen_shows_the_busiest_broker_and_what_was_seen(folder: Path) -> None:
    """The table has use beside the limit of that time, and says what is not known."""
    stdout, stderr, code = call(folder)
    assert (stderr, code) == ("", 0)
    expected = Path(__file__).parents[1] / "cases/usage/screen.txt"
    if os.environ.get("RECORD_USAGE"):
        expected.write_text(stdout, encoding="utf-8")
    assert stdout == expected.read_text(encoding="utf-8")
    assert stdout in PAGE.read_text(encoding="utf-8")


@pytest.mark.usefixtures("store", "now")
def test_a_requester_reads_what_the_page_shows(folder: Path) -> None:
    """The commands of the page for requesters print what it shows, of their team and of a user."""
    page = (PAGE.parent / "how-much.md").read_text(encoding="utf-8")
    table = call(folder, "--owner", "payments")[0].split("\n\n")[1]
    (program,) = re.findall(r"--format json \| jq '(.+)'$", page, re.MULTILINE)
    values = call(folder, "--format", "json")[0]
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    line = ["jq", program]
    of_user = subprocess.run(line, input=values, capture_output=True, text=True, check=True)
    assert table in page
    assert f"```json\n{of_user.stdout}```\n" in page


@pytest.mark.usefixtures("store", "now")
def test_json_has_every_client_of_a_quota(folder: Path) -> None:
    """The highest of two brokers counts, not their sum, and each client has its own share."""
    values = json.loads(call(folder, "--format", "json")[0])
    quotas = {(json.dumps(quota["entity"]), quota["key"]): quota for quota in values["quotas"]}
    alice = quotas['{"user": "alice"}', "producer_byte_rate"]
    (client,) = alice["clients"]
    assert (alice["owner"], alice["verdict"]) == ("payments", "used")
    assert 0.95 < client["share"] < 1.2  # the sum over brokers would be 1.9
    assert client["throttled"] is True
    default = quotas['{"client-id": null}', "producer_byte_rate"]
    assert {client["client_id"] for client in default["clients"]} >= {"many", "other", "rare"}
    encoded = quotas[json.dumps({"user": ENCODED}), "producer_byte_rate"]
    assert encoded["clients"][0]["user"] == ENCODED
    assert quotas['{"user": "nobody"}', "producer_byte_rate"]["verdict"] == "no use seen"
    assert values["seen"] < 0.01


@pytest.mark.usefixtures("store", "now")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--owner", "payments"), ["alice", "alice"]),
        (("--near", "109"), ["bob", "", "alice"]),
        (("--unused",), []),
    ],
)
def test_options_select_quotas(
    folder: Path, arguments: tuple[str, ...], expected: list[str]
) -> None:
    """An owner, a share of the limit and disuse select quotas; an empty csv has its header."""
    values = json.loads(call(folder, *arguments, "--format", "json")[0])
    assert [quota["entity"].get("user") or "" for quota in values["quotas"]] == expected
    lines = call(folder, *arguments, "--format", "csv")[0].splitlines()
    assert len(lines) == 1 + len(expected)
    assert lines[0] == (
        "entity,key,limit,owner,verdict,reason,user,client_id,broker,median,p95,highest,share,"
        "at_limit_least,at_limit,throttled,counted,with_limit,limit_then,start,end,seen"
    )


@pytest.mark.usefixtures("store", "now")
def test_a_team_without_a_quota_is_told_of_defaults(folder: Path) -> None:
    """An owner that no quota has is an error with the owners there are, not an empty list."""
    assert call(folder, "--owner", "payment") == (
        "",
        (
            "no quota that the last run read has the owner payment in Git; owners are payments\n"
            "  Clients of a team without a quota use a default: quota-ops usage CLUSTER --format "
            "json lists each of them.\n"
        ),
        2,
    )


def overview(folder: Path, source: UsageSource, store: RunStore, time: Time) -> UseOverview:
    """Return what was used in a time."""
    policy = read_policy(folder / "desired_state/orders")
    return read_overview(source, policy, store, time, lambda _done, _all: None)


BEFORE = Time(TIMES["started"] + timedelta(seconds=10), TIMES["down"] - timedelta(seconds=10))
"""While both brokers were scraped and no limit changed."""


def test_unused_needs_proof(folder: Path, source: UsageSource, store: RunStore) -> None:
    """A quota is unused only if every registered broker was scraped and limits are known."""
    found = overview(folder, source, store, BEFORE)
    verdicts = {(str(quota.entity), quota.key): quota.verdict for quota in found.quotas}
    nobody = ("user=nobody", "producer_byte_rate")
    assert (found.seen > 0.99, found.limits_known, verdicts[nobody]) == (True, 1, UseVerdict.UNUSED)
    frozen = overview(folder, source, store, Time(TIMES["started"], TIMES["ended"]))
    assert 0.8 < frozen.seen < 0.95
    verdicts = {(str(quota.entity), quota.key): quota.verdict for quota in frozen.quotas}
    assert verdicts[nobody] is UseVerdict.NOT_SEEN
    leave_look(store, TIMES["ended"], QUOTAS, brokers=3)
    third = overview(folder, source, store, BEFORE)
    assert (third.seen, third.registered_brokers) == (0, 3)
    assert UseVerdict.UNUSED not in {quota.verdict for quota in third.quotas}


@pytest.mark.usefixtures("now")
def test_a_broker_of_another_cluster_does_not_stand_for_one_of_this(
    folder: Path, source: UsageSource, store: RunStore
) -> None:
    """If labels show that one of two brokers is not registered, the other one was not seen."""
    hosts = ("broker-1.kafka.svc", "broker-3.kafka.svc")
    leave_look(store, TIMES["finer"] + timedelta(seconds=1), {**QUOTAS, **LATER}, hosts=hosts)
    found = overview(folder, source, store, BEFORE)
    assert (found.seen, found.has_others) == (0, True)
    assert UseVerdict.UNUSED not in {quota.verdict for quota in found.quotas}
    lines = [
        "broker-3.kafka.svc:9092 was never scraped: use on it is unknown.",
        "broker-2 is not registered: it was removed, or match selects another cluster, whose",
    ]
    for options in ((), ("--probe",)):
        stdout = call(folder, *options)[0]
        assert [line in stdout for line in lines] == [True, True]


def test_a_share_is_of_the_limit_of_that_time(
    folder: Path, source: UsageSource, store: RunStore
) -> None:
    """A limit that was raised later changes no share of the time before."""
    raised = {**QUOTAS, "user=alice": {"producer_byte_rate": 5_000_000}}
    leave_look(store, TIMES["ended"], raised)
    found = overview(folder, source, store, BEFORE)
    (alice,) = [quota for quota in found.quotas if quota.entity == Entity.of({"user": "alice"})]
    assert (alice.limit, alice.clients[0].limit) == (5_000_000, 500_000)
    assert alice.clients[0].share == pytest.approx(alice.clients[0].p95 / 500_000)


def test_a_client_counts_for_the_level_of_that_time(
    folder: Path, source: UsageSource, store: RunStore
) -> None:
    """A client moves to another quota when it gets one of another level, and not before."""
    found = overview(folder, source, store, Time(TIMES["started"], TIMES["ended"]))
    by_quota = {
        str(quota.entity): {(share.user, share.client_id) for share in quota.clients}
        for quota in found.quotas
        if quota.key == "producer_byte_rate"
    }
    assert (None, "other") in by_quota["client-id=<default>"]
    assert by_quota["user=bob"] == {("bob", None)}
    assert found.limits_known == 1


def test_without_a_run_no_limit_is_known(folder: Path, source: UsageSource) -> None:
    """Without a run that read the quotas, there is nothing to compare with."""
    empty = RunStore(open_place(folder / "empty"))
    found = overview(folder, source, empty, BEFORE)
    assert (found.quotas, found.limits_known, found.last_look, found.registered_brokers) == (
        [],
        0,
        None,
        None,
    )


def test_writes_of_runs_are_looks(store: RunStore) -> None:
    """A value that was found after a write counts from the end of that run on."""
    read, wrote, later = (TIMES["started"] + timedelta(seconds=each) for each in (59, 60, 70))
    raised: State = {**QUOTAS, "user=alice": {"producer_byte_rate": 700_000}}
    leave_look(store, read, QUOTAS)
    leave_write(store, wrote, "user=alice", "producer_byte_rate", 700_000)
    leave_look(store, later, raised)
    cleared = later + timedelta(seconds=1)
    leave_write(store, cleared, "user=alice", "producer_byte_rate", None)
    past = read_past_quotas(store, "orders", CLUSTER_ID, TIMES["started"])
    alice = Entity.of({"user": "alice"})
    periods = past.periods("producer_byte_rate", TIMES["started"], TIMES["down"])
    found = [(period.start, [each.get(alice) for each in period.limits]) for period in periods]
    # Another value was read after `later`, and nobody knows since when.
    assert found == [
        (TIMES["started"], [500_000]),
        (read, [500_000, 700_000]),
        (wrote, [700_000]),
        (later, [700_000, None]),
        (later + timedelta(seconds=1), [None, 500_000]),
    ]


def test_a_write_of_the_last_run_before_the_time_is_known(folder: Path) -> None:
    """A run that wrote a quota three weeks ago knows it at the beginning of this week."""
    store, end = RunStore(open_place(folder / "few runs")), TIMES["ended"]
    leave_look(store, end - timedelta(days=20), {})
    leave_write(store, end - timedelta(days=20), "user=alice", "producer_byte_rate", 500_000)
    leave_look(store, end - timedelta(days=3), {"user=alice": {"producer_byte_rate": 500_000}})
    start = end - timedelta(days=7)
    past = read_past_quotas(store, "orders", CLUSTER_ID, start)
    limits = {Entity.of({"user": "alice"}): 500_000.0}
    assert past.periods("producer_byte_rate", start, end) == [Period(start, end, (limits,))]


def test_runs_that_read_the_same_quotas_share_them(store: RunStore) -> None:
    """A week of hourly runs takes the memory of the quotas once for each change of them."""
    past = read_past_quotas(store, "orders", CLUSTER_ID, TIMES["started"] - timedelta(hours=30))
    first, second, third = past.looks
    assert first.stored is second.stored
    assert third.stored != first.stored


@pytest.mark.usefixtures("store", "now")
def test_the_probe_shows_what_is_there(folder: Path) -> None:
    """The probe shows the preset that fits, the scrapes, and why a key has no series."""
    stdout, stderr, code = call(folder, "--probe")
    assert (stderr, code) == ("", 0)
    assert stdout in PAGE.read_text(encoding="utf-8")
    assert stdout == (
        "orders in the Prometheus monitoring\n"
        "  brokers scraped: 2 of 2 registered\n"
        "  scraped every 5 s\n"
        "  presets that fit, by keys: jmx-exporter (3)\n"
        "\n"
        "key                       series  brokers\n"
        "producer_byte_rate        22      2        measured\n"
        "consumer_byte_rate        2       2        measured\n"
        "request_percentage        20      2        measured\n"
        "controller_mutation_rate  0       0        no quota of this key is stored, so brokers "
        "measure nothing\n"
    )


@pytest.mark.usefixtures("store", "now")
@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("{cluster: orders}", "{cluster: order}", "wrong matchers: 22 series have other labels"),
        ("step: 5s", "preset: confluent", "set preset: jmx-exporter"),
        (
            "step: 5s",
            "labels: {user: principal, client-id: client}, step: 5s",
            (
                "22      2        no names of clients: 22 of 22 series have none, see below\n"
                "consumer_byte_rate        2       2        no names of clients: 2 of 2 series "
                "have none, see below\n"
                "request_percentage        20      2        no names of clients: 20 of 20 series "
                "have none, see below\n"
                "controller_mutation_rate  0       0        no quota of this key is stored, so "
                "brokers measure nothing\n"
                "kafka_server_quota_byte_rate has series without the labels principal and client; "
                "one has cluster, instance, job, resource, user. If the names are in other labels, "
                "set `labels` under `usage` in cluster.yaml. Otherwise the exporter's rule for "
                "this metric or a rule of the scrape (labeldrop) loses them: see the rules to "
                "copy.\n"
            ),
        ),
        ("step: 5s", "step: 60s", None),
    ],
)
def test_the_probe_shows_why_nothing_is_there(
    folder: Path, before: str, after: str, expected: str | None
) -> None:
    """Wrong matchers, presets and labels are named, and nothing measured is exit code 6."""
    file = folder / "desired_state/orders/cluster.yaml"
    file.write_text(CLUSTER_YAML.replace(before, after))
    stdout, stderr, code = call(folder, "--probe")
    if expected is None:
        assert "scraped every 5 s, but step is 60 s: set step: 5s" in stdout
        return
    assert expected in stdout
    assert code == 6
    assert stderr == (
        "the use of orders is unknown: Prometheus has no series of its clients\n"
        "  The table shows why for each key.\n"
    )


@pytest.mark.usefixtures("store", "now")
def test_the_probe_fails_if_a_part_of_the_series_has_no_names(folder: Path) -> None:
    """A scheduled probe notices series that nobody can attribute, beside others that have names."""
    recorded = read_recorded()

    def respond(asked: Question, _headers: Mapping[str, str]) -> Answer:
        if 'resource="Fetch"' not in asked.query or 'user=""' not in asked.query:
            return recorded[asked]
        labels = {"__name__": "kafka_server_quota_byte_rate", "instance": "broker-1"}
        result = [{"metric": labels, "value": [0, "1"]}]
        return Answer(200, json.dumps({"status": "success", "data": {"result": result}}))

    with serve(respond) as url:
        (folder / "monitoring.properties").write_text(f"url={url}\n")
        stdout, stderr, code = call(folder, "--probe")

    assert "measured: 1 of 2 series have none, see below" in stdout
    assert (code, stderr) == (
        6,
        (
            "some series of consumer_byte_rate have no names of clients, so the use of orders is "
            "known in part\n  Below the table are the labels that one of them has.\n"
        ),
    )


@pytest.mark.usefixtures("store", "now")
def test_a_step_that_is_too_short_hides_no_outage_and_no_time_at_a_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If scrapes are further apart than `step`, the screen says so, and ranges have the truth."""
    exact = call(folder)[0]
    file = folder / "desired_state/orders/cluster.yaml"
    file.write_text(CLUSTER_YAML.replace("step: 5s", "step: 4s"))
    # So that the server gets the queries that were recorded.
    monkeypatch.setattr(samples, "_SAMPLES_AT_ONCE", samples._SAMPLES_AT_ONCE * 5 // 4)  # noqa: SLF001
    stdout, stderr, code = call(folder)
    assert (stderr, code) == ("", 0)
    head = stdout.splitlines()[:4]
    assert head[1] == (
        "  Scraped every 5 s, but step is 4 s, so at most 80 % of the time counts as seen: "
        "set step: 5s."
    )
    assert head[2:] == exact.splitlines()[1:3]  # the time that is really missing
    assert "112 %    4 to 6 min" in stdout


@pytest.mark.usefixtures("store", "now")
@pytest.mark.parametrize("option", [("--probe",), ()])
def test_brokers_that_cannot_be_told_apart_are_an_error(
    folder: Path, option: tuple[str, ...]
) -> None:
    """A label that no scrape has is named: without it, use is unknown."""
    file = folder / "desired_state/orders/cluster.yaml"
    file.write_text(CLUSTER_YAML.replace("step: 5s", "broker: pod, step: 5s"))
    assert call(folder, *option) == (
        "",
        (
            "the scrapes of this cluster have no label pod that tells brokers apart\n"
            "  Set `broker` under `usage` in cluster.yaml to the label that differs between "
            "brokers.\n"
        ),
        6,
    )


def test_a_cluster_without_usage_is_explained(folder: Path) -> None:
    """Without `usage` in cluster.yaml, the error names the field."""
    file = folder / "desired_state/orders/cluster.yaml"
    file.write_text(f"cluster_id: {CLUSTER_ID}\nconnection: orders\n")
    stdout, stderr, code = call(folder)
    assert (stdout, code) == ("", 2)
    assert stderr.startswith("cluster.yaml of orders has no usage: where use is measured")


@pytest.mark.usefixtures("store", "now")
def test_suggested_limits_are_a_patch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit is suggested only for clients that never reached theirs, and nothing is written."""
    file = folder / "desired_state/orders/team.yaml"
    limits = "limits: {producer_byte_rate: 1 MB}"
    text = f"owner: web\nquotas:\n  - client-id:\n      default: true\n    {limits}\n"
    file.write_text(text)
    environment = {**os.environ, "QUOTA_OPS_CONNECTIONS": str(folder)}
    arguments = ["suggest", "orders", "--days", "1", "--run-store", str(folder / "store")]

    little = call_cli(arguments, environment, folder)
    monkeypatch.setattr(suggestion, "ENOUGH", 0.0)
    enough = call_cli(arguments, environment, folder)

    assert (little.returncode, enough.returncode, file.read_text()) == (0, 0, text)
    assert little.stdout.endswith("0 limits suggested for 11 quotas.\n")
    assert "broker-1 was not seen for" in little.stdout
    head, _, patch = enough.stdout.partition("--- ")
    assert [line.split()[:6] for line in head.splitlines()[5:7]] == [
        ["client-id=<default>", "producer_byte_rate", "1", "MB/s", "450", "kB/s"],
        ["user=bob", "producer_byte_rate", "100", "kB/s", "26", "kB/s"],
    ]
    assert head.splitlines()[-2:] == [
        "2 limits suggested for 11 quotas.",
        "not in the patch: user=bob producer_byte_rate: Git does not declare it",
    ]
    changed = [line for line in patch.splitlines()[2:] if line[0] in "+-"]
    assert changed == [
        "-    limits: {producer_byte_rate: 1 MB}",
        "+    limits: {producer_byte_rate: 450 kB}",
    ]
