"""What runs on a real broker append to the history."""

import json
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.store.history import history
from quota_ops.store.places import parquet
from quota_ops.store.run.folder import RunFolder
from tests.broker.going_back import plan_back, write
from tests.broker.killing import die_in_file, die_in_request
from tests.broker.test_dead_runs import begin, kill
from tests.cli.test_shared_name import US, leave_run
from tests.lab import Lab
from tests.places import on_disk
from tests.writing import State

KEY = "producer_byte_rate"
ALICE = "user=alice"


def recorded(lab: Lab) -> list[HistoryRow]:
    """Return the rows of the history, in the order in which the runs began."""
    found = [history.read_day(day) for day in history.list_days(lab.store)]
    assert [one.troubles for one in found if one.troubles] == []
    rows = (
        row for one in found for table in one.tables for row in parquet.read_rows(HISTORY, table)
    )
    return sorted(rows, key=lambda row: (row.sequence or 0, row.ended, row.entity or ""))


@pytest.mark.local_store
def test_very_long_names_are_recorded(lab: Lab) -> None:
    """The name of a file is cut to what a folder of this machine takes, as in a bucket."""
    long = "c" * 200
    lab.desire({ALICE: {KEY: 10.0}})
    lab.folder.rename(lab.folder.parent / long)
    place = lab.store.new_run(long, f"{long}__{'r' * 250}")
    folder = RunFolder.start(place, cluster=long, commit=None, dag_id=long)
    run_stages(lab.resume(folder, cluster_folder=lab.folder.parent / long), CHAINS["reconcile"])

    assert [row.cluster for row in recorded(lab)] == [long] * 2
    assert lab.call("history", long).returncode == 0


def test_a_mistyped_cluster_id_takes_no_name(lab: Lab) -> None:
    """After runs that expected another cluster, the name is that of the cluster that it was."""
    why = ("--reason", "x", "--by", "anna")
    raised = ("--names", ALICE, "--add", f"{KEY}=20", *why)
    lab.desire({ALICE: {KEY: 10.0}})
    lab.run("reconcile")
    lab.desire({ALICE: {KEY: 10.0}}, cluster_id=US)
    for command in (("plan", "demo"), ("alter", "demo", *raised), ("adopt", "demo", "--all", *why)):
        refused = lab.call(*command)
        assert (refused.returncode, "expected the cluster" in refused.stderr) == (3, True)
    lab.desire({ALICE: {KEY: 10.0}})
    lab.run("reconcile")

    commands = [("show", "demo/last"), ("history", "demo"), ("metrics",), ("runs", "demo")]
    ended = [lab.call(*command) for command in commands]

    assert [(one.returncode, one.stderr) for one in ended] == [(0, "")] * 4
    assert 'quota_ops_cluster_compared{cluster="demo"} 1.0' in ended[2].stdout
    assert [ended[3].stdout.count(text) for text in ("demo", US)] == [5, 0]


def test_each_run_appends_what_it_found_and_did(lab: Lab) -> None:
    """A reconcile, an alter with its reason, a plan that finds the drift, and the repair."""
    lab.desire({ALICE: {KEY: 10.0}, "user=bob": {KEY: 5.0}})
    lab.run("reconcile")
    reason = ("--reason", "INC-31", "--by", "anna")
    lab.call("alter", "demo", "--names", ALICE, "--add", f"{KEY}=20", *reason)
    lab.call("plan", "demo", "--by", "robot-7")
    lab.run("reconcile")

    rows = recorded(lab)

    assert {row.cluster_id for row in rows} == {lab.cluster.cluster_id}
    assert [
        (row.mode, row.status, row.author, row.declared, row.in_sync, row.drifted, row.changed)
        for row in rows
        if row.entity is None
    ] == [
        ("apply", "In sync", None, 2, 2, 0, 2),
        ("alter", "", "anna", None, None, None, 1),
        ("look", "Needs attention", "robot-7", 2, 1, 1, 0),
        ("apply", "In sync", None, 2, 2, 0, 1),
    ]
    quotas = (
        "entity",
        "kind",
        "state",
        "outcome",
        "actual",
        "requested",
        "found",
        "owner",
        "owned",
    )
    assert [
        tuple(getattr(row, name) for name in quotas) for row in rows if row.entity is not None
    ] == [
        (ALICE, "pending", "changed", "accepted", None, 10.0, 10.0, "team", 0),
        ("user=bob", "pending", "changed", "accepted", None, 5.0, 5.0, "team", 0),
        (ALICE, "altered", None, "accepted", 10.0, 20.0, 20.0, None, None),
        (ALICE, "drifted", "drifted", None, 20.0, None, 20.0, "team", 2),
        (ALICE, "drifted", "changed", "accepted", 20.0, 10.0, 10.0, "team", 2),
    ]
    assert [row.run_reason for row in rows if row.mode == "alter"] == ["INC-31", "INC-31"]

    told = json.loads(lab.call("history", "demo", "--entity", ALICE, "--format", "json").stdout)
    assert sorted(
        (one["what"], one["before"] or 0.0, one["requested"] or 0.0, one["found"] or 0.0)
        for one in told["events"]
    ) == [
        ("altered", 10.0, 20.0, 20.0),
        ("drifted, seen by 2 runs", 10.0, 0.0, 20.0),
        ("repaired", 20.0, 10.0, 10.0),
        ("set", 0.0, 10.0, 10.0),
    ]
    (quota,) = told["quotas"]
    assert (quota["drifts"], quota["drifted_since"], quota["altered_by"]) == (1, None, "anna")
    assert quota["set_run"] == quota["repaired_by"] == rows[-1].run
    tried = lab.call("backtest", "all", "--policy", str(lab.folder / "cluster.yaml")).stdout
    assert "2 plans since " in tried
    table = lab.call("history", "demo").stdout
    assert re.search(r"2 of 2 +4 +1\b", table)


def commit_all(folder: Path, author: str) -> str:
    """Commit every file below a folder by an author, and return the id of the commit."""
    git = ("git", "-C", str(folder), "-c", "user.name=merger", "-c", "user.email=merger@x.org")
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        more = ("--author", author) if arguments[0] == "commit" else ()
        subprocess.run([*git, *arguments, *more], check=True)
    shown = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return shown.stdout.strip()


@pytest.mark.local_store
def test_who_changed_what(lab: Lab) -> None:  # noqa: PLR0915 - one story
    """Each change has its author, approver and values: of Git, by hand, undone, held, of a policy.

    The screen, JSON and JSON Lines have the same changes; drift that nobody repaired is none.
    """
    rest = {"user=bob": {KEY: 5.0}}
    by_hand = {"user=eve": {KEY: 5.0}, "user=fay": {KEY: 5.0}}
    first: State = {ALICE: {KEY: 10.0}, **rest, "user=dan": {KEY: 5.0}, **by_hand}
    lab.desire(first, guards={"small_byte_rate": 0})
    commit = commit_all(lab.folder, "Anna <anna@example.com>")
    lab.call("reconcile", "demo", "--by", "robot-7")
    reason = ("--reason", "INC-31", "--by", "carol")
    guards = {"small_byte_rate": 0, "removals": 9}
    lab.desire(first, guards=guards)
    commit_all(lab.folder, "Ben <ben@example.com>")
    lab.call("reconcile", "demo", "--allow", "policy_changed", *reason)
    (lab.folder / "README.md").write_text("nothing that a run reads")
    commit_all(lab.folder, "Eve <eve@example.com>")
    lab.put({"user=bob": {KEY: 7.0}})
    repair = ("reconcile", "demo", "--by", "robot-7")
    kill(lab, partial(die_in_request, 1, before=False), repair)
    assert lab.call(*repair).returncode == 0  # which finds the repair, and records it
    second: State = {ALICE: {KEY: 1.0}, **rest, "user=dan": {KEY: 6.0}, "user=eve": {KEY: 6.0}}
    lab.put({"user=eve": {KEY: 6.0}, "user=fay": {KEY: None}})  # as Git declares next
    lab.desire(second, guards=guards)
    cut = commit_all(lab.folder, "Ben <ben@example.com>")
    lab.call("reconcile", "demo", "--allow", "cut", *reason)
    write(lab, plan_back(lab, lab.runs[-1]))
    (lab.folder / "README.md").write_text("nothing again")
    commit_all(lab.folder, "Dora <dora@example.com>")
    for _ in range(2):  # by hand, while the cut blocks the plan
        lab.put({ALICE: {KEY: 10.0}, "user=bob": {KEY: 7.0}})
        assert lab.call(*repair).returncode == 1
    lab.call("alter", "demo", "--names", ALICE, "--delete", KEY, "--allow", "unlimited", *reason)
    lab.call("hold", "demo", "--names", "user=bob", "--until", "2h", *reason)
    lab.call("release", "demo", "--names", "user=bob", *reason)
    lab.call("release", "demo", "--from-ledger", "--names", "user=bob", *reason)
    lab.call("adopt", "demo", "--names", "user=bob", *reason)
    lab.put({"user=bob": {KEY: 7.0}})
    lab.call("report", "demo")

    lines = lab.call("history", "demo", "--changes", "--since", "7d", "--format", "jsonl").stdout
    told = json.loads(lab.call("history", "demo", "--changes", "--format", "json").stdout)
    shown = lab.call("history", "demo", "--changes").stdout

    changes = [json.loads(text) for text in lines.splitlines()]
    assert changes == [{"cluster": "demo", **change} for change in told["changes"]]
    values = ("entity", "what", "before", "requested")
    names = (*values, "owner", "by", "ran_by", "approver", "commit_author")
    anna, ben, dora = (f"{name} <{name.lower()}@example.com>" for name in ("Anna", "Ben", "Dora"))
    held = next(change for change in changes if change["what"].startswith("held until "))
    held["what"] = "held"
    changes.sort(key=lambda change: change["key"] is None)  # a hold may be of the same second
    assert [tuple(change[name] for name in names) for change in changes] == [
        (ALICE, "set", None, 10.0, "team", "Anna", "robot-7", None, anna),
        ("user=bob", "set", None, 5.0, "team", "Anna", "robot-7", None, anna),
        *[
            (user, "set", None, 5.0, "team", "Anna", "robot-7", None, anna)
            for user in ("user=dan", *by_hand)
        ],
        ("user=bob", "repaired: found as sent", 7.0, 5.0, "team", "Anna", "robot-7", None, anna),
        (ALICE, "set", 10.0, 1.0, "team", "Ben", "carol", "carol", ben),
        ("user=dan", "set", 5.0, 6.0, "team", "Ben", "carol", None, ben),
        ("user=eve", "found as in Git", 5.0, None, "team", "Ben", "carol", None, ben),
        ("user=fay", "found as in Git", 5.0, None, "team", "Ben", "carol", None, ben),
        (ALICE, "rolled back", 1.0, 10.0, "team", "anna", "anna", None, None),
        ("user=dan", "rolled back", 6.0, 5.0, "team", "anna", "anna", None, None),
        *[("user=bob", "repaired", 7.0, 5.0, "team", "Anna", "robot-7", None, anna)] * 2,
        (ALICE, "altered: cleared", 10.0, None, "team", "carol", "carol", "carol", None),
        ("user=bob", "released", 5.0, None, "team", "carol", "carol", None, dora),
        ("user=bob", "adopted", 5.0, None, "team", "carol", "carol", None, dora),
        ("", "policy approved", None, None, None, "Ben", "carol", "carol", ben),
        ("user=bob", "held", None, None, None, "carol", "carol", None, None),
        ("user=bob", "hold ended", None, None, None, "carol", "carol", None, None),
    ]
    commits = [changes[number]["commit"] for number in (0, 1, 5, 6, 8, 9, 12, 13, 14)]
    assert commits == [*[commit] * 3, *[cut] * 3, commit, commit, None]
    assert changes[17]["policy"] == "guards.removals: 20 -> 9"
    assert [(change["was_sent"], change["found"]) for change in changes] == [
        *[(True, found) for found in (10.0, 5.0, 5.0, 5.0, 5.0, 5.0, 1.0, 6.0)],
        *[(False, 6.0), (False, None)],
        *[(True, found) for found in (10.0, 5.0, 5.0, 5.0, None)],
        *[(False, None), (False, 5.0), (False, None), (False, None), (False, None)],
    ]
    by_itself = [change["found_by"] == change["run"] for change in changes[:15]]
    assert by_itself == [number != 5 for number in range(15)]
    cells = [re.split(r" {2,}", row) for row in shown.splitlines()]
    assert cells[0] == [
        *("when", "entity", "key", "what", "change", "owner", "by", "approved by", "commit", "run")
    ]
    newest_set = next(row for row in cells if "10 B/s -> 1 B/s" in row)
    assert newest_set[5:9] == ["team", "Ben; carol: INC-31", "carol", cut[:7]]
    found = [row[3:5] for row in cells if row[3] == "found as in Git"]
    assert found == [["found as in Git", change] for change in ("5 B/s -> none", "5 B/s -> 6 B/s")]
    newest_repair = next(row for row in cells if "7 B/s (outside Git) -> 5 B/s" in row)
    assert newest_repair[3:8] == ["repaired", newest_repair[4], "team", "Anna", commit[:7]]
    assert len(cells) == 1 + len(changes)
    on_page = [
        " ".join(filter(None, row)) for row in lab.runs[-1].read_json("past.json")["changes"]
    ]
    assert on_page == [" ".join(row.split()) for row in shown.splitlines()[1:]]
    page = (lab.runs[-1].place / "report.html").read().decode()
    assert f"{len(changes)} changes before this run" in page
    assert "<td>10 B/s -&gt; 1 B/s</td>" in page


def test_a_run_records_what_it_does_to_clients(lab: Lab) -> None:
    """A backtest tries guards that judge effects: a new limit below a default cuts clients."""
    lab.desire({"user=<default>": {KEY: 10.0}})
    lab.run("reconcile")
    (lab.folder / "clients.csv").write_text("user,client-id\nalice,app\nbob,app\n")
    new = {"user=<default>": {KEY: 10.0}, ALICE: {KEY: 4.0}}
    lab.desire(new, inventory="clients.csv", guards={"cut_share": 60, "blast_radius_share": 50})
    lab.call("plan", "demo")
    lab.desire(new, inventory="clients.csv", guards={"cut_share": 50, "blast_radius": 0})

    tried = lab.call("backtest", "demo", "--policy", str(lab.folder / "cluster.yaml")).stdout

    rows = recorded(lab)
    (lab.folder / "clients.csv").unlink()
    lab.desire({"user=<default>": {KEY: 10.0}})
    lab.put({"user=eve": {KEY: 10.0}})
    adopt = ("adopt", "demo", "--names", "user=eve", "--reason", "INC-31", "--by", "carol")
    for command in (adopt, ("reconcile", "demo", "--commit", "c1", "--by", "robot-7")):
        ended = lab.call(*command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    of_eve = lab.call("history", "demo", "--entity", "user=eve", "--format", "json").stdout

    names = ("what", "by", "commit")  # no commit declared the quota of eve
    assert [tuple(event[name] for name in names) for event in json.loads(of_eve)["events"]] == [
        ("adopted", "carol", None),
        ("cleared", "robot-7", None),
    ]
    assert [(row.clients, row.losing) for row in rows if row.entity is None] == [
        (None, None),
        (2, 1),
    ]
    assert [row.cut for row in rows if row.entity is not None] == [0.0, 60.0]
    assert "user=alice producer_byte_rate would fall by more than 50 %" in tried
    assert "1 client would or may get less, more than 0" in tried
    assert "blast_radius is not tried on 1 of 2 plans" in tried
    assert "cut is tried on the values of rows only" not in tried


def test_a_report_that_is_written_again_adds_nothing(lab: Lab) -> None:
    """An end of a run is recorded once, however often its report is written."""
    lab.desire({ALICE: {KEY: 10.0}})
    run = lab.run("reconcile")
    before = recorded(lab)

    assert lab.call("report", "--run", str(run.place)).returncode == 0
    assert recorded(lab) == before


@pytest.mark.local_store
def test_a_history_that_cannot_be_written_is_reported(lab: Lab) -> None:
    """The run ends as without it; a plan prints why on stderr, a report has it as a warning."""
    lab.desire({ALICE: {KEY: 10.0}})
    lab.store.prepare()
    on_disk(lab.store.history).write_text("a file in its place")

    planned, applied = lab.call("plan", "demo"), lab.call("reconcile", "demo")

    assert (planned.returncode, applied.returncode) == (0, 0)
    assert planned.stderr.startswith("this run is not in the history: ")
    (report,) = Path(str(lab.store.root)).glob("runs/demo/*/report.txt")
    assert "this run is not in the history: " in report.read_text("utf-8")


def test_a_blocked_plan_and_a_failed_look_are_recorded(lab: Lab) -> None:
    """The guards that block are named, and so is the stage that failed, with its reason."""
    lab.desire({"user=<default>": {KEY: 10.0}})
    lab.call("plan", "demo")
    (lab.folder / "team.yaml").write_text("owner: [")
    lab.call("plan", "demo")

    blocked, failed = (row for row in recorded(lab) if row.entity is None)

    assert (blocked.blocked_by, blocked.stopped_at, blocked.stopped) == (
        "default_touched",
        "plan",
        "refused",
    )
    assert (failed.declared, failed.stopped_at, failed.stopped) == (None, "check", "failed")
    assert "team.yaml" in str(failed.failure)


def read_of_killed(lab: Lab) -> tuple[list[str], set[str], str]:
    """Return the runs that a history names as unrecorded, those of its events, and its warning."""
    command = ("history", "demo", "--entity", "user=a1")
    found = json.loads(lab.call(*command, "--format", "json").stdout)
    return found["unrecorded"], {one["run"] for one in found["events"]}, lab.call(*command).stderr


@pytest.mark.local_store
def test_killed_before_its_end_is_recorded(lab: Lab) -> None:
    """Its writes are in the history once, and it is named until a later run records its end."""
    begin(lab)
    run = kill(lab, partial(die_in_file, "end-0001.json"))
    name = run.place.name
    warning = (
        f"run {name} (verified) has not recorded its end, so the history may lack what it wrote. "
        f"See quota-ops show demo/{name}\n"
    )
    assert read_of_killed(lab) == ([name], {name}, warning)

    lab.run("reconcile")

    assert (run.place / "end-0001.json").exists()
    assert read_of_killed(lab) == ([], {name}, "")


def test_a_report_has_the_history_of_its_own_cluster(lab: Lab) -> None:
    """The chart of a page, and the run that it links to, are by cluster id, not by name alone."""
    lab.desire({})
    runs = [lab.run("report")]
    for day in (1, 2):
        leave_run(lab.store, "demo", US, day)
        runs.append(lab.run("report"))

    past = runs[-1].read_json("past.json")

    assert [day["date"] for day in past["days"]] == [runs[-1].about().started[:10]]
    assert past["previous"] == runs[-2].place.name
