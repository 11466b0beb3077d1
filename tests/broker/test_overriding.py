"""Unmanaged quotas that take clients from what Git declares, on a real broker."""

import getpass
import json
import re
import subprocess
import time
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Producer, ThrottleEvent

from quota_ops.kafka import delivery
from quota_ops.model.errors import QuotaOpsError
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.store.run.files import PAGE, REPORT, ROLLBACK
from tests.broker.going_back import plan_back
from tests.broker.killing import die_in_request
from tests.broker.lossy import IN_FLIGHT, TWICE, Lossy
from tests.broker.test_stages_killed import Play
from tests.broker.test_standstill import NOW
from tests.lab import Lab, error_of
from tests.writing import State, settle

KEY = "producer_byte_rate"
OVERRIDE = "client-id=<default>,user=ANONYMOUS"
ROW = f"overriding  {OVERRIDE}  {KEY}  1 kB/s   stays"
WORDS = (
    "user ANONYMOUS, every client id without a limit of its own: 1 kB/s in force, lower than "
    "1 MiB/s declared by "
    "user=ANONYMOUS (team.yaml:4)"
)


def measure_throttle(bootstrap: str) -> float:
    """Return the longest time, in seconds, that a broker throttles a producer of 20 kB."""
    throttles: list[float] = [0.0]

    def keep(event: ThrottleEvent) -> None:
        throttles.append(event.throttle_time)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "app",
            "linger.ms": 200,  # all in one request: a second one would wait for the throttle's end
            "throttle_cb": keep,
            "log_level": 0,
        }
    )
    for _ in range(20):
        producer.produce("overriding", b"x" * 1000)
        producer.poll(0)
    producer.flush(20)
    producer.poll(0.2)
    return max(throttles)


def test_in_sync_is_a_promise_about_limits(lab: Lab) -> None:
    """If a quota by hand takes clients from a declared one, no output says that both agree."""
    lab.desire({"user=ANONYMOUS": {KEY: 1048576.0}, "user=carol": {KEY: 1048576.0}})
    assert lab.call("reconcile", "demo").returncode == 0
    verified = lab.call("verify", "demo")
    assert verified.stdout.endswith(
        "2 of 2 quotas verified on every broker: stored and in force.\n"
    )
    assert measure_throttle(lab.bootstrap) == 0

    lab.put({OVERRIDE: {KEY: 1000.0}})

    assert measure_throttle(lab.bootstrap) > 0
    for command in ("plan", "report", "verify", "reconcile"):
        shown = lab.call(command, "demo")
        assert (command, shown.returncode) == (command, 7)
        assert ROW in re.sub(" {2,}(?=1 k)", "  ", shown.stdout), shown.stdout
        assert WORDS in shown.stdout
        remove = f"--defaults client-id --names user=ANONYMOUS --delete {KEY}"
        assert f"quota-ops alter demo {remove}" in shown.stdout
    verify = lab.call("verify", "demo")
    assert verify.stdout.splitlines()[-1] == (
        "2 of 2 quotas verified on every broker: stored, but 1 is not in force for all clients."
    )
    run = lab.runs[-2]
    report = run.read_json(REPORT)
    assert report["answer"] == {
        "status": "Needs attention",
        "sentence": "1 unmanaged quota on demo overrides 1 quota of Git; 1 of 2 quotas in sync; "
        "1 of 1 broker agrees.",
    }
    assert [report["counts"][name] for name in ("in_sync", "overridden", "overriding")] == [1, 1, 1]
    assert report["rows"][0]["overrides"] == [
        {
            "entity": "user=ANONYMOUS",
            "value": 1048576.0,
            "owner": "team",
            "file": "team.yaml",
            "line": 4,
        }
    ]
    for name in ("report.txt", PAGE):
        assert WORDS in (run.place / name).read().decode().replace("&#34;", '"'), name
    metrics = lab.call("metrics").stdout
    for metric, value in (("overriding", 1), ("in_sync", 1), ("unmanaged", 0)):
        assert f'quota_ops_quotas_{metric}{{cluster="demo"}} {value}.0' in metrics

    (command,) = {
        line.partition("quota-ops ")[2] for line in shown.stdout.splitlines() if remove in line
    }
    done = lab.call(*command.replace("TEXT", "INC-7").split())
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert lab.call("verify", "demo").stdout.endswith(": stored and in force.\n")
    assert lab.call("report", "demo").returncode == 0
    history = lab.call("history", "demo", "--entity", OVERRIDE)
    lines = [" ".join(line.split()) for line in history.stdout.splitlines()]
    assert lines[0].startswith(f"{OVERRIDE} {KEY} was overriding 1 time, seen by 3 runs, first ")
    assert [line.split(" UTC ")[1].split(" 20")[0] for line in lines[3:]] == [
        f"{KEY} no longer overriding",
        f"{KEY} altered: cleared 1 kB/s -> none {getpass.getuser()}: INC-7",
        f"{KEY} overriding, seen by 3 runs 1 kB/s (Git: 1 MiB/s)",
    ]
    assert f"{OVERRIDE} {KEY} 1 3 " in " ".join(lab.call("history", "demo").stdout.split())


def test_the_ways_out_of_several_overriding_quotas(lab: Lab) -> None:
    """Each entity has its commands, which do what they promise: remove, accept into Git, or hold.

    Also with several files: the printed patch of `accept` applies. `alter` tells before and after
    that it makes one. `accept --all` accepts drift alone. `hold` knows the names of what a run
    found on the cluster.
    """
    lab.desire({"user=bob": {KEY: 1048576.0}, "user=carol": {KEY: 1048576.0}})
    (lab.folder / "a.yaml").write_text("owner: a\nquotas: []\n")
    lab.call("reconcile", "demo")
    other = "client-id=app,user=carol"
    rates = {KEY: 65536.0, "consumer_byte_rate": 65536.0}
    lab.put({other: rates})
    change = ("--defaults", "client-id", "--names", "user=bob", "--add", f"{KEY}=64KiB")
    allow = ("--allow", "default_touched", "--allow", "cut", "--reason", "INC-7")
    alter = ("alter", "demo", *change, *allow)
    tried = lab.call(*alter, "--validate-only")
    altered = json.loads(lab.call(*alter, "--format", "json").stdout)

    shown = lab.call("verify", "demo").stdout
    bob, app = "--defaults client-id --names user=bob", "--names client-id=app --names user=carol"
    ways = [line.split("quota-ops ")[1] for line in shown.splitlines() if line.startswith("To ")]
    everything = lab.call("accept", "demo", "--all")
    patch = lab.call(*ways[1].split(), "--dry-run")
    applies = subprocess.run(
        ["/usr/bin/env", "git", "apply", "--check", "-"],
        cwd="/",
        input=patch.stdout.partition("\n1 of 1 ")[0] + "\n",
        text=True,
        check=False,
        capture_output=True,
    )
    held = lab.call(*ways[5].replace("TEXT", "INC-7").split())
    lab.call("release", "demo", "--names", "client-id=app", "--names", "user=carol")
    accepted = lab.call(*ways[4].split())
    removed = lab.call(*ways[0].replace("TEXT", "INC-7").split())

    assert [re.split(" --until| --run", way)[0] for way in ways] == [
        f"alter demo {bob} --delete {KEY} --reason TEXT",
        f"accept demo {bob} --key {KEY}",
        f"hold demo {bob}",
        f"alter demo {app} --delete {KEY} --reason TEXT",
        f"accept demo {app} --key {KEY}",
        f"hold demo {app}",
    ]
    assert (
        "  it comes before user=bob (team.yaml:4) for some clients: reports show it as overriding "
        "until it is removed or accepted into Git\n"
    ) in tried.stdout
    assert altered["changes"][0]["overrides"] == {
        "entity": "user=bob",
        "file": "team.yaml",
        "line": 4,
    }
    assert everything.returncode == 2
    assert (applies.returncode, applies.stderr) == (0, ""), patch
    assert "check the spelling" not in held.stdout
    assert "1 of 1 quota accepted" in accepted.stdout, accepted.stderr
    assert removed.returncode == 0
    assert lab.call("reconcile", "demo").returncode == 0
    assert lab.call("verify", "demo").stdout.endswith(
        "3 of 3 quotas verified on every broker: stored and in force.\n"
    )
    changes = " ".join(lab.call("history", "demo", "--changes").stdout.split())
    login = getpass.getuser()
    assert f"{other} {KEY} adopted 64 KiB/s team {login} " in changes, changes
    assert f"user=bob {KEY} set none -> 1 MiB/s team {login} " in changes, changes
    listed = lab.call("runs", "demo").stdout.splitlines()
    assert listed[-1].split("  ")[-1].strip() == login, listed
    asked = ("--user", "carol", "--client-id", "app", "--explain")
    resolved = lab.call("resolve", "demo", *asked).stdout
    assert "managed, recorded by run" in resolved, resolved


def test_a_quota_that_left_git_comes_first_until_it_is_cleared(lab: Lab) -> None:
    """Verify, plans, blocked runs and metrics count what clients get, until it is cleared."""
    state = {"user=bob": {KEY: 1048576.0}, "user=carol": {KEY: 1048576.0}}
    lab.desire(state, guards={"raise_factor": 10})
    lab.call("reconcile", "demo")
    batch = "client-id=batch,user=carol"
    lab.put({batch: {KEY: 1000.0}})
    names = ("--names", "client-id=batch", "--names", "user=carol")
    assert lab.call("adopt", "demo", *names, "--reason", "INC-7").returncode == 0
    verified = lab.call("verify", "demo")  # until a run clears it, it comes first for this client
    assert verified.returncode == 1
    assert verified.stdout.endswith(
        "2 of 2 quotas verified on every broker: stored, but 1 is not in force for all clients.\n"
    )
    assert f"1 quota that is not in Git would be cleared: {batch} {KEY}\n" in verified.stderr
    planned = lab.call("plan", "demo")
    part = "1 to change of 3, 1 in sync, 1 overridden for some clients, 0 unmanaged"
    assert (planned.returncode, part in planned.stdout) == (1, True), planned.stdout
    for options, code, number in (((), 1, 1), (("--allow", "raise", "--reason", "INC-7"), 0, 2)):
        done, shown = lab.call("reconcile", "demo", *options), lab.call("show", "last").stdout
        part = f"; {number} of 2 quotas in sync"
        assert (done.returncode, part in shown) == (code, True), shown
        metrics = lab.call("metrics").stdout
        assert re.search(rf"quotas_in_sync\{{.*\}} {number}.0\n", metrics), metrics


@pytest.mark.usefixtures("impatient_verify")
def test_verify_and_report_tell_of_a_quota_that_left_git_alike(lab: Lab) -> None:
    """Changed since, it needs attention; verify names it beside rows that differ, and dates others.

    The date of an overriding quota is that of the last run that did not see it.
    """
    lab.desire({"user=bob": {KEY: 1048576.0}, "user=carol": {KEY: 1048576.0}})
    lab.call("reconcile", "demo")
    lab.desire({"user=carol": {KEY: 1048576.0}})
    lab.put({"user=bob": {KEY: 2097152.0}})

    for command in ("report", "verify"):
        lab.call(command, "demo")
    runs = json.loads(lab.call("runs", "--last", "2", "--format", "json").stdout)
    assert [run["status"] for run in runs] == ["Needs attention"] * 2

    lab.put({"user=carol": {KEY: 5.0}})
    both = lab.call("verify", "demo").stderr
    assert f"1 row differs from Git. 1 quota not in Git would be cleared: user=bob {KEY}.\n" in both

    lab.put({"user=carol": {KEY: 1048576.0}, "client-id=x,user=carol": {KEY: 5.0}})
    seen = lab.runs[-1].place.name
    for command in ("report", "verify"):
        assert f"not there in run {seen}" in lab.call(command, "demo").stdout, command


def test_protected_and_removed_quotas(lab: Lab) -> None:
    """A quota that cluster.yaml protects is accepted; a removal shows what clients fall back to."""
    state = {"user=ANONYMOUS": {KEY: 1048576.0}}
    lab.put({OVERRIDE: {KEY: 1000.0}})
    lab.desire(state, protect=[{"user": "ANONYMOUS", "client-id": "any"}])

    done = lab.call("reconcile", "demo")

    assert done.returncode == 0, done.stdout
    report = json.loads(lab.call("report", "demo", "--format", "json").stdout)
    assert report["answer"]["sentence"].startswith("demo matches the files")
    first = f"come first: {OVERRIDE} {KEY} (1 kB/s in place of 1 MiB/s)."
    assert first in lab.call("report", "demo").stdout
    assert lab.call("verify", "demo").stdout.endswith(
        "1 of 1 quota verified on every broker: stored and in force, except where protected "
        f"quotas come first: {OVERRIDE} {KEY} (1 kB/s in place of 1 MiB/s).\n"
    )
    run = lab.runs[-1].place.name
    lab.put({OVERRIDE: {KEY: 10.0}})
    for command in ("report", "plan"):  # also after a run that has seen it
        told = lab.call(command, "demo")
        assert (
            "1 quota of Git is not in force for all clients, because protected quotas come first: "
            f"{OVERRIDE} {KEY} (10 B/s in place of 1 MiB/s; 1 kB/s in run {run})."
        ) in told.stdout, told.stdout

    lab.put({"user=<default>": {KEY: 500.0}})
    lab.desire({"user=carol": {KEY: 1048576.0}})
    removed = lab.call("plan", "demo").stdout
    assert "to 500 B/s (user=<default>), which Git does not declare" in removed

    lab.desire({"user=carol": {KEY: 1048576.0}}, scope=[{"user": "any"}])
    lab.put({"client-id=app,user=carol": {KEY: 1000.0}})
    outside = lab.call("report", "demo").stdout
    assert ("To remove it:" in outside, "To keep it:" in outside) == (True, False)
    kept = lab.call("accept", "demo", "--names", "user=carol", "--names", "client-id=app")
    why = "it is outside the scope of demo: extend that first"
    assert (kept.returncode, why in kept.stdout) == (2, True), kept.stdout + kept.stderr

    held = ("hold", "demo", "--names", "user=carol", "--any", "client-id", "--until", "1h")
    lab.call(*held, "--reason", "known")
    time.sleep(1)  # a hold and a look have their times to the second
    assert " overriding " not in lab.call("report", "demo").stdout
    lab.put({"client-id=new,user=carol": {KEY: 10.0}})  # nobody decided about this one
    newer = lab.call("report", "demo")
    (first,) = [row for row in newer.stdout.splitlines() if row.split()[:1] == ["overriding"]]
    assert "client-id=new,user=carol" in first, newer.stdout
    run = lab.runs[-2].place.name
    assert f"not there in run {run}\n" in newer.stdout
    assert re.search(r"held until .* by .*: known; not there in run ", newer.stdout)


def test_a_declared_address_in_another_spelling(lab: Lab) -> None:
    """It is overriding until the printed commands have cleared both, and set the declared one.

    Neither a run, also with clear_unmanaged, nor an alter clears it while the declared one is
    stored: no description would show that brokers apply neither then.
    """
    key, stray = "connection_creation_rate", "ip=::ffff:10.0.0.1"
    lab.desire({"ip=10.0.0.1": {key: 5.0}}, clear_unmanaged=True)
    lab.call("reconcile", "demo")
    words = (
        "ip=10.0.0.1 (team.yaml:5), the same address in another spelling: each broker applies "
        "the one that was changed last, and after only one is cleared, none until the other is "
        "cleared and set again"
    )
    change = ("alter", "demo", "--names", stray, "--add", f"{key}=5000")
    altered = lab.call(*change, "--reason", "INC-7")
    assert words.replace(", the same", " is the same") in altered.stdout, altered.stdout

    for command in ("plan", "report", "verify", "reconcile"):
        shown = lab.call(command, "demo")
        assert (command, shown.returncode) == (command, 7)
        assert words in shown.stdout, shown.stdout
        if command == "verify":
            assert shown.stdout.splitlines()[-1] == (
                "1 of 1 quota verified on every broker: stored, but 1 may not be in force for all "
                "clients. No broker shows whether another spelling of one IP address was cleared "
                "since."
            )
    only = lab.call("alter", "demo", "--names", stray, "--delete", key, "--reason", "INC-7")
    refusal = (
        f"{stray} is another spelling of ip=10.0.0.1: once it is cleared, brokers do not "
        f"apply ip=10.0.0.1 {key} either, although they store it\n  Nothing was sent. Clear "
        f"ip=10.0.0.1 {key} first, then {stray}, and then set ip=10.0.0.1 {key} again.\n"
    )
    assert (only.returncode, only.stderr) == (1, refusal)
    assert lab.call("alter", "demo", "--undo", "last").returncode == 1
    assert lab.stored() == {"ip=10.0.0.1": {key: 5.0}, stray: {key: 5000.0}}
    (way,) = [row for row in shown.stdout.splitlines() if row.startswith("To remove it:")]
    results = [
        lab.call(*step.split()[1:])
        for step in re.split("&&|;", way.partition(":")[2].replace("TEXT", "INC-7"))
    ]

    assert [(done.returncode, done.stderr) for done in results] == [(0, "")] * 3, results
    assert lab.call("verify", "demo").stdout.endswith(
        ": stored and in force. No broker shows whether another spelling of one IP address was "
        "cleared since.\n"
    )
    assert lab.call("report", "demo").returncode == 0
    assert lab.stored() == {"ip=10.0.0.1": {key: 5.0}}

    lab.put({"ip=localhost": {key: 5.0}})
    named = lab.call("report", "demo")
    assert named.returncode == 7
    assert (
        "5 connections/s, or 5 connections/s of ip=10.0.0.1 (team.yaml:5), the same address if the "
        "broker resolves the name to it: each broker applies the one that was changed last"
    ) in named.stdout
    assert "To keep it" not in named.stdout
    kept = lab.call("accept", "demo", "--names", "ip=localhost")
    why = "localhost is not an IP address. Write it in digits: brokers may resolve a host name"
    assert (kept.returncode, f"left out: ip=localhost {key}: {why}" in kept.stdout) == (2, True)

    only = lab.call("alter", "demo", "--names", "ip=localhost", "--delete", key, "--reason", "why")
    assert (only.returncode, lab.stored()["ip=localhost"]) == (1, {key: 5.0})
    assert only.stderr == (
        f"brokers may resolve ip=localhost to an address with a {key} of its own (ip=10.0.0.1): "
        f"once it is cleared, they do not apply that either, although they store it\n  Nothing was "
        f"sent. Clear {key} of this address first, then of ip=localhost with --allow unlimited, "
        "and then set that of the address again.\n"
    )
    lab.desire({"ip=10.0.0.1": {key: 9.0}, "ip=10.0.0.2": {key: 5.0}})  # merged, not applied
    named = lab.call("report", "demo")
    (way,) = [row for row in named.stdout.splitlines() if row.startswith("To remove it:")]
    steps = re.split("&&|;", way.partition(":")[2].replace("TEXT", "INC-7"))
    assert [lab.call(*step.split()[1:]).returncode for step in steps] == [0, 0, 0]
    assert lab.stored() == {"ip=10.0.0.1": {key: 5.0}}


def test_another_spelling_that_somebody_cleared(lab: Lab) -> None:
    """A limit that brokers lost with another spelling of its address is drift, and a run sets it.

    The controller ignores a value that is stored, so the run clears it first.
    """
    key, stray = "connection_creation_rate", "ip=::ffff:10.0.0.1"
    lab.desire({"ip=10.0.0.1": {key: 5.0}})
    lab.call("reconcile", "demo")
    lab.put({stray: {key: 5.0}})
    assert lab.call("report", "demo").returncode == 7
    lab.put({stray: {key: None}})
    time.sleep(1)  # a look and a repair have their times to the second
    why = (
        f"stored, but not in force since {stray}, the same address in another spelling, was cleared"
    )
    for command in ("plan", "report"):
        lost = lab.call(command, "demo", "--detailed-exitcode")
        assert (lost.returncode, why in lost.stdout) == (4, True), lost.stdout + lost.stderr
        assert "1 to change of 1, 0 in sync" in lost.stdout
    assert (
        "1 quota on demo was changed outside Git; known since " in lab.call("show", "last").stdout
    )
    verified = lab.call("verify", "demo")
    assert verified.stdout.splitlines()[-1] == (
        "1 of 1 quota verified on every broker: stored, but 1 is not in force for all clients. "
        "No broker shows whether another spelling of one IP address was cleared since."
    )
    error = (
        f"1 limit is not in force: ip=10.0.0.1 {key} is {why}\n"
        "  A run clears and sets what it may write of this: quota-ops plan shows it.\n"
    )
    assert (verified.returncode, verified.stderr) == (1, error)
    assert (
        "1 quota of an IP address on demo is stored, but not in force"
        in lab.call("show", "last").stdout
    )
    assert f"as team.yaml:5 (team) declares; {why}; managed" in (
        lab.call("resolve", "demo", "--ip", "10.0.0.1").stdout
    )
    resolved = lab.call("resolve", "demo", "--ip", "10.0.0.1", "--format", "json").stdout
    assert json.loads(resolved)[key]["lost"] == why
    renamed = lab.folder.rename(lab.folder.parent / "shop")
    verified = lab.call("verify", "shop")
    assert (verified.returncode, verified.stderr) == (1, error)
    renamed.rename(lab.folder)

    names = ("--names", "ip=10.0.0.1", "--reason", "why")
    lab.call("hold", "demo", *names, "--until", "1h")
    for command in ("report", "verify"):
        held = lab.call(command, "demo")
        assert (held.returncode, held.stderr) == (0, ""), held.stdout
        assert command == "verify" or f": why; {why}" in held.stdout, held.stdout
        (newest, *_) = json.loads(lab.call("runs", "demo", "--format", "json").stdout)
        assert (command, newest["status"]) == (command, "Pending")
    assert held.stdout.splitlines()[-1].startswith("0 of 0 quotas verified on every broker. 1 was")
    lab.call("release", "demo", *names)
    lab.desire({"ip=10.0.0.1": {key: 5.0}}, drift="report")
    assert f"sets drift: report; {why}" in lab.call("report", "demo").stdout
    lab.desire({"ip=10.0.0.1": {key: 5.0}})

    alter = ("alter", "demo", "--names", "ip=10.0.0.1", "--add", f"{key}=5", "--reason", "why")
    altered = lab.call(*alter)
    assert "the cluster already stored" in altered.stdout
    assert why in lab.call("plan", "demo").stdout, "brokers ignore a value that they store"

    repaired = lab.call("reconcile", "demo")

    assert (repaired.returncode, lab.stored()) == (0, {"ip=10.0.0.1": {key: 5.0}}), repaired.stdout
    assert lab.call("plan", "demo", "--detailed-exitcode").returncode == 0
    assert lab.call("verify", "demo").returncode == 0


ADDRESS, RATE = "ip=10.0.0.1", "connection_creation_rate"
WHOLE: State = {ADDRESS: {RATE: 5.0}}


def lose_limit(lab: Lab) -> None:
    """Let a run set the limit of an address, and brokers lose it with another spelling."""
    lab.desire(WHOLE)
    lab.run("reconcile")
    lab.put({"ip=::ffff:10.0.0.1": {RATE: 5.0}})
    assert lab.call("verify", "demo").returncode == 7
    lab.put({"ip=::ffff:10.0.0.1": {RATE: None}})
    time.sleep(1)  # a look and a repair have their times to the second


@pytest.mark.parametrize("fates", [[IN_FLIGHT] * 2, [TWICE]], ids=["unknown", "settled"])
def test_a_clear_without_a_response_is_remembered(
    lab: Lab, fates: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clear of a lost limit that arrives after a newer run has set it is a late write."""
    monkeypatch.setattr(delivery, "PATIENCE", 0.5)
    lose_limit(lab)
    network = Lossy(lab.cluster, iter(fates))
    older = lab.start(connect=lambda: network)
    if fates == [TWICE]:
        run_stages(older, CHAINS["reconcile"])
    else:
        assert f"{ADDRESS}  unknown: the write was sent" in (
            error_of(older, CHAINS["reconcile"]).message
        )
        assert lab.stored() == WHOLE
    lab.run("reconcile")
    assert lab.stored() == lab.known() == WHOLE

    network.deliver()

    assert lab.stored() == {}
    lab.desire(WHOLE, drift="report")
    run, error = lab.refused("reconcile", allow={})
    assert f"late_write: {ADDRESS}" in error.message
    (row,) = run.differences()
    assert (row.kind, row.before, row.run) == ("late_write", None, older.folder.place.name)
    lab.run("reconcile")
    assert lab.stored() == WHOLE


@pytest.mark.local_store
def test_a_run_killed_before_it_sets_what_it_cleared(lab: Lab) -> None:
    """The next run sets the limit, also if drift is only reported by then."""
    lose_limit(lab)
    die = partial(die_in_request, 2, before=True)
    assert Play(lab, "lost").kill(die, ("reconcile", "demo"))
    settle(lab.cluster)
    assert lab.stored() == {}
    lab.desire(WHOLE, drift="report")

    lab.run("reconcile")

    assert lab.stored() == lab.known() == WHOLE
    assert lab.run("diff").differences() == ()


def test_a_rollback_clears_no_limit_that_was_stored(lab: Lab) -> None:
    """A run that sets a lost limit again has changed no value, so nothing is to be taken back."""
    lose_limit(lab)
    run = lab.run("reconcile")

    back = plan_back(lab, run)

    (row,) = back.read(ROLLBACK).rows
    assert (row.before, row.left) == (5.0, "already has its earlier value")
    assert back.differences() == ()


def test_a_lost_limit_that_a_run_may_not_write_is_not_cleared(lab: Lab) -> None:
    """A run sends nothing under drift: report or ask, while it is frozen, or the address held."""
    lose_limit(lab)
    network = Lossy(lab.cluster, iter([lambda: pytest.fail("a request was sent")]))
    policies: list[dict[str, Any]] = [{"drift": "report"}, {"drift": "ask"}, {"freeze": [NOW]}, {}]
    for policy in policies:
        lab.desire(WHOLE, **policy)
        if not policy:
            held = ("hold", "demo", "--names", ADDRESS, "--until", "1h", "--reason", "INC-7")
            assert lab.call(*held).returncode == 0
        run = lab.start(connect=lambda: network, allow={"policy_changed": "a test"})

        with suppress(QuotaOpsError):
            run_stages(run, CHAINS["reconcile"])

        (row,) = run.folder.differences()
        assert (policy, row.kind, row.before) == (policy, "drifted", None)
