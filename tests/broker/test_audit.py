"""The end of a run on a real broker: kept in the run store, and sent to a topic if possible."""

import json
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from jsonschema import Draft202012Validator

from quota_ops.runs.chain import run_stages
from quota_ops.stages.report import end_record
from quota_ops.stages.report.audit import audit_schema
from quota_ops.store.run.folder import RunFolder
from tests.broker.killing import die_in_topic
from tests.broker.test_dead_runs import begin, kill
from tests.calling import call_cli
from tests.lab import Lab
from tests.places import on_disk
from tests.preloaded import preloaded

KEY = "producer_byte_rate"
END = "end-0001.json"


@pytest.fixture(name="topic")
def _topic(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Create a topic of one partition on the lab's broker, as the audit topic of runs."""
    name = f"audit-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": lab.bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    monkeypatch.setenv(end_record.TOPIC, name)
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_DEMO", str(lab.connection_file))
    yield name
    admin.delete_topics([name])[name].result()


def consumed(lab: Lab, topic: str, number: int) -> list[tuple[str, object]]:
    """Return key and value of a topic's first messages."""
    consumer = Consumer({"bootstrap.servers": lab.bootstrap, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(number, timeout=30)
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0))
    consumer.close()
    assert end == number
    return [((one.key() or b"").decode(), json.loads(one.value() or b"")) for one in found]


def sent_records(lab: Lab, topic: str, number: int) -> list[dict[str, Any]]:
    """Return a topic's first messages, which have the cluster id as key and a valid record."""
    schema = Draft202012Validator(audit_schema())
    keys, records = zip(*consumed(lab, topic, number), strict=True)
    assert {*keys} == {lab.cluster.cluster_id}
    assert [error for one in records for error in schema.iter_errors(one)] == []
    return [*records]


def without_changes(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as the run store has it."""
    return {key: one for key, one in record.items() if key not in {"changes", "part", "parts"}}


def test_a_topic_takes_the_end_of_a_run(lab: Lab, topic: str) -> None:
    """The topic gets each end with its changes, and another one if a run is reported again."""
    lab.desire({"user=a": {KEY: 1.0}})
    first = lab.run("reconcile")
    lab.desire({"user=a": {KEY: 2.0}, "user=<default>": {KEY: 1.0}})
    refused, _ = lab.refused("reconcile", allow={})

    run_stages(lab.resume(first), ("report",))

    sent = sent_records(lab, topic, 3)
    kept = [first.read_json(END), refused.read_json(END), first.read_json("end-0002.json")]
    assert [without_changes(one) for one in sent] == kept
    assert sent[2]["changes"] == sent[0]["changes"]
    [change] = sent[0]["changes"]
    told = {name: change[name] for name in ("entity", "after", "outcome", "verdict")}
    assert told == {"entity": "user=a", "after": 1.0, "outcome": "accepted", "verdict": "verified"}
    assert [one["outcome"] for one in sent[1]["changes"]] == [None, None]
    assert first.read_json("audit.json") == {"topic": topic, "messages": 1, "failure": None}


@pytest.mark.local_store
def test_a_run_that_was_killed_before_the_topic_has_its_end(lab: Lab, topic: str) -> None:
    """The next run of the cluster sends it."""
    begin(lab)
    killed = kill(lab, partial(die_in_topic, topic)).place.name
    following = lab.run("reconcile").place.name

    sent = sent_records(lab, topic, 2)
    assert [(one["run"], one["changed"]) for one in sent] == [(killed, 9), (following, 0)]


def test_every_end_is_kept(lab: Lab) -> None:
    """A run that is reported again ends again; the earlier record is unchanged."""
    lab.desire({"user=a": {KEY: 1.0}})
    run = lab.run("reconcile")
    before = (run.place / END).read()

    run_stages(lab.resume(run), ("report",))

    assert (run.place / END).read() == before
    assert [run.read_json(f"end-000{at}.json")["end"] for at in (1, 2)] == [1, 2]
    assert not run.has("audit.json")


@pytest.mark.parametrize("trouble", ["nobody listens", "no such connection"])
def test_a_topic_that_is_out_of_reach(
    trouble: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its audit topic a run is applied, verified and recorded; reports name the topic."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # not listening, but no other process gets the port
        file = lab.root / "audit.properties"
        file.write_text(f"bootstrap.servers=127.0.0.1:{closed.getsockname()[1]}\n")
        monkeypatch.setenv(end_record.TOPIC, "audit")
        monkeypatch.setenv(end_record.CONNECTION, "audit")
        if trouble == "nobody listens":
            monkeypatch.setenv("QUOTA_OPS_CONNECTION_AUDIT", str(file))
        lab.desire({"user=a": {KEY: 1.0}})

        run = lab.run("reconcile")

    assert lab.stored() == lab.known() == {"user=a": {KEY: 1.0}}
    assert run.read_json(END)["answer"]["status"] == "In sync"
    report = run.read_json("report.json")
    [said] = report["warnings"]
    assert report["answer"]["status"] == "In sync"
    assert said.startswith("the end of this run is not in the audit topic audit: ")
    why = "1 of 1 not delivered: " if trouble == "nobody listens" else "there is no connection"
    assert why in said
    assert "\n" not in said, "reports would show a line end as an escape"
    for page in ("report.txt", "report.html"):
        assert "the end of this run is not in the audit topic" in (run.place / page).read().decode()


@pytest.mark.local_store
def test_files_are_private(lab: Lab) -> None:
    """Only the owner of the run store can read its records."""
    lab.desire({"user=a": {KEY: 1.0}})
    run: RunFolder = lab.run("reconcile")

    assert on_disk(run).stat().st_mode & 0o077 == 0


def test_a_topic_takes_what_has_no_report(lab: Lab, topic: str) -> None:
    """alter, adopt, release and an apply alone end as a run does: in a file and in the topic."""
    lab.desire({"user=a": {KEY: 2.0**20}})
    audited = {end_record.TOPIC: topic}
    who = ("--by", "anna", "--reason", "INC-7")
    for command in (
        ("alter", "demo", "--names", "user=a", "--add", f"{KEY}=2 MiB"),
        ("adopt", "demo", "--names", "user=a", *who),
        ("release", "demo", "--from-ledger", "--names", "user=a", *who),
        ("apply", "demo", "--allow", "takeover", "--reason", "INC-7"),
    ):
        ran = lab.cli(*command, environment=audited)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout

    sent = sent_records(lab, topic, 4)
    kept = [run.read_json(END) for run in lab.runs]
    assert [without_changes(one) for one in sent] == kept
    assert [(one["verb"], one["reason"]) for one in kept] == [
        ("alter", None),
        ("adopt", "INC-7"),
        ("release", "INC-7"),
        (None, None),
    ]
    assert [one["by"] for one in kept[1:]] == ["anna", "anna", None]
    named = ("kind", "before", "after", "owner", "outcome", "verdict")
    assert [[one.get(name) for name in named] for end in sent for one in end["changes"]] == [
        ["altered", None, 2.0**21, None, "accepted", "verified"],
        ["adopted", 2.0**21, 2.0**21, "team", None, None],
        ["released", 2.0**21, 2.0**21, "team", None, None],
        ["takeover", 2.0**21, 2.0**20, "team", "accepted", None],
    ]
    assert [[one["stage"] for one in end["stages"]] for end in kept[:3]] == [
        ["plan", "validate", "apply", "verify"],
        ["adopt"],
        ["release"],
    ]


def test_an_alter_without_its_audit_topic(lab: Lab) -> None:
    """An alter whose audit topic is out of reach is written and recorded, with a warning."""
    lab.desire({})
    environment = {end_record.TOPIC: "audit", end_record.CONNECTION: "nowhere"}

    ran = lab.cli(
        "alter", "demo", "--names", "user=a", "--add", f"{KEY}=1", environment=environment
    )

    assert ran.returncode == 0
    lost = "the end of this run is not in the audit topic audit: "
    assert ran.stderr.startswith(f"{lost}there is no ")
    lab.wait_for({"user=a": {KEY: 1.0}})
    (run,) = lab.runs
    assert run.read_json(END)["verb"] == "alter"


def test_what_nobody_can_read_is_kept(lab: Lab) -> None:
    """A change is recorded even if the output cannot be printed, or a hold is damaged."""
    lab.desire({"user=a": {KEY: 2.0**20}})
    hold = lab.store.of_cluster(lab.cluster.cluster_id).holds / "00000001.json"
    for command, value in (
        (f"alter demo --names user=a --add {KEY}=2", 2.0),
        ("adopt demo --names user=a --by anna --reason INC-7", 2.0),
        ("apply demo", 2.0**20),
    ):
        call = ["sh", "-c", f"{preloaded()} {command} > /dev/full"]
        ended = subprocess.run(
            call, env=lab.environment, cwd=lab.root, stderr=subprocess.PIPE, check=False
        )
        said = (ended.returncode, ended.stderr)
        assert said == (120, b"quota-ops: cannot print: No space left on device\n")
        lab.wait_for({"user=a": {KEY: value}})
    hold.create(b"{")
    altered = lab.call("alter", "demo", "--names", "user=a", "--add", f"{KEY}=1048577")

    assert (altered.returncode, altered.stderr) == (0, "")
    assert f"\nIt is unknown what the next run does: {hold} " in altered.stdout
    assert "\nMove the damaged file elsewhere, and hold its entities again." in altered.stdout
    lab.wait_for({"user=a": {KEY: 1048577.0}})
    assert [run.read_json(END)["changed"] for run in lab.runs].count(1) == 3
    assert len(lab.runs) == 4


def test_a_topic_of_a_cluster_named_by_its_file(lab: Lab, topic: str) -> None:
    """The audit topic is reached by the file of --connection when no connection has the name."""
    lab.desire({"user=a": {KEY: 2.0**20}})
    environment = lab.environment | {end_record.TOPIC: topic}
    del environment["QUOTA_OPS_CONNECTION_DEMO"]
    file = ("--connection", str(lab.connection_file))
    for command in (
        ("alter", "demo", "--names", "user=b", "--add", f"{KEY}=2 MiB"),
        ("reconcile", "demo"),
        ("adopt", "demo", "--names", "user=b", "--by", "anna", "--reason", "INC-7"),
    ):
        ran = call_cli((*command, *file), environment, lab.root)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout

    ends = [json.dumps(end) for _, end in consumed(lab, topic, 3)]
    assert [["user=b" in end, "user=a" in end] for end in ends] == [
        [True, False],
        [False, True],
        [True, False],
    ]
