"""runs and show on the runs of a real broker, from the run store alone."""

import json
import re
from getpass import getuser
from subprocess import CompletedProcess

from quota_ops.store.run.files import ABOUT, DESCRIBED, PLAN, VERIFICATION
from tests.lab import Lab

KEY = "producer_byte_rate"


def said(result: CompletedProcess[str]) -> str:
    """Return the output of a successful command."""
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def masked(text: str, lab: Lab) -> str:
    """Return a text without what differs from run to run."""
    text = text.replace(str(lab.store.root), "ROOT/store").replace(str(lab.root), "ROOT")
    text = text.replace(lab.cluster.cluster_id, "ID")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "TIME", text)
    text = re.sub(r"plan [0-9a-f]{8}", "plan DIGEST8", text)
    text = re.sub(r"\d+(\.\d)? kB", "SIZE", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{4}", "RUN", text)


def test_each_run_is_listed(lab: Lab) -> None:
    """A plan, an applied run, one blocked by a guard, an alter: each has its result."""
    lab.desire({"user=alice": {KEY: 10.0}})
    said(lab.call("plan", "demo", "--by", "robot-7"))
    lab.run("reconcile")
    lab.desire({"user=<default>": {KEY: 10.0}})
    lab.refused("reconcile", allow={})
    lab.call("alter", "demo", "--names", "user=bob", "--add", f"{KEY}=7", "--by", "anna")
    (lab.store.runs_of("demo") / "broken" / ABOUT).create(b"{")

    shown = masked(said(lab.call("runs", "demo", "--last", "3")), lab)
    assert re.sub(" +", " ", shown).splitlines() == [
        "when run cluster commit status changes size by",
        "TIME RUN demo Altered 1 SIZE anna",
        "TIME RUN demo Pending, blocked by guards SIZE",
        "TIME RUN demo In sync 1 SIZE",
        "… and 2 older",
    ]
    told = json.loads(said(lab.call("runs", "--format", "json")))
    assert [(one["status"], one["changes"], one["commit"]) for one in told] == [
        ("Altered", 1, None),
        ("Pending", 0, None),
        ("In sync", 1, None),
        ("Pending", 0, None),
        ("Unknown", 0, None),
    ]
    assert [one["by"] for one in told] == ["anna", None, None, "robot-7", None]
    assert told[-1]["trouble"] == "run.json is damaged"
    for run in told[:-1]:
        answer = json.loads(said(lab.call("show", run["path"], "--format", "json")))["answer"]
        assert answer == {"status": run["status"], "sentence": run["sentence"]}
    assert told[1]["sentence"].startswith("2 changes to make on demo; 2 guards block")


def test_a_run_that_wrote_alone_is_never_called_a_yes(lab: Lab) -> None:
    """`apply` without verify: the state of the cluster is unknown, and every text shows it."""
    lab.desire({"user=alice": {KEY: 10.0}})

    told = json.loads(said(lab.call("apply", "demo", "--format", "json")))

    assert told["answer"] == {
        "status": "Unknown",
        "sentence": "verify did not run, so it is unknown whether demo matches Git; "
        "1 change was written and not read back; "
        "0 of 1 quota in sync.",
    }
    assert "  Unknown  1  " in said(lab.call("runs"))
    lab.wait_for({"user=alice": {KEY: 10.0}})


def test_a_run_is_shown_as_it_ended(lab: Lab) -> None:
    """The report of an earlier run, again: for people, for programs, for a ticket."""
    lab.desire({"user=alice": {KEY: 10.0}}, silence=[{"finding": "QO107", "reason": "a test"}])
    run = lab.run("reconcile")

    shown = masked(said(lab.call("show", "last")), lab)
    assert shown == (
        "demo matches the files, whose commit is unknown; 1 change made by this run; 1 of 1 "
        "quota in sync; 1 of 1 broker agrees.\n"
        "demo (ID) at unknown commit, plan DIGEST8, run RUN, TIME\n"
        "No ledger of this cluster yet: nothing is cleared until a run has been verified.\n"
        "\n"
        "Changed (1)\n"
        "  kind     entity      key                 before  desired  change  source       since  "
        "result\n"
        "  pending  user=alice  producer_byte_rate  none    10 B/s   new     team.yaml:4         "
        "accepted, verified\n"
        "\n"
        "Brokers\n"
        "broker 1 agrees\n"
        "\n"
        "report: ROOT/store/runs/demo/RUN/report.html\n"
    )
    left = run.read_json("report.json")
    told = json.loads(said(lab.call("show", run.place.name[-4:], "--format", "json")))
    varies = {"stages", "versions"}
    assert {name: told[name] for name in told.keys() - varies} == {
        name: left[name] for name in left.keys() - varies
    }
    looked = lab.run("report")
    assert [one.read_json("report.json")["looked"] for one in (run, looked)] == [
        run.read_json(VERIFICATION)["at"],
        looked.read_json(DESCRIBED)["at"],
    ]


def test_a_run_without_a_plan_is_shown(lab: Lab) -> None:
    """An adoption and an alter show who, why and what; a damaged part is named."""
    lab.desire({})
    lab.put({"user=bob": {KEY: 7.0}})
    by = ("--reason", "ours since OPS-7", "--by", "anna")
    said(lab.call("adopt", "demo", "--names", "user=bob", *by))
    assert masked(said(lab.call("show", "last")), lab) == (
        "Adopted: 1 quota on demo entered the ledger, by anna.\n"
        "demo (ID) at unknown commit, run RUN, TIME\n"
        "\n"
        "Adopted\n"
        "by: anna\n"
        f"login: {getuser()}\n"
        "reason: ours since OPS-7\n"
        "entity    key                 value\n"
        "user=bob  producer_byte_rate  7 B/s\n"
        "\n"
        "run: ROOT/store/runs/demo/RUN\n"
    )
    planned = lab.run("plan")
    (planned.place / PLAN).replace(b"{")
    shown = said(lab.call("show", planned.place.name))
    assert f"plan failed: {planned.place / PLAN} is not valid JSON" in shown
