"""Accept drift that is on a real broker."""

import getpass
import json
import subprocess
from difflib import unified_diff

from tests.lab import Lab
from tests.repositories import commit_all, git

KEY, OTHER = "producer_byte_rate", "consumer_byte_rate"
ALICE, BOB = "user=alice", "user=bob"
WHY = ("--allow", "unlimited", "--reason", "INC-31")


def test_what_was_accepted_is_in_sync(lab: Lab) -> None:
    """A changed and a deleted quota are accepted as a run found them; a pending change stays.

    A dry run prints a patch for git and writes nothing. A later change in Git is left to people.
    """
    lab.desire({ALICE: {KEY: 10.0, OTHER: 30.0}, BOB: {KEY: 5.0}})
    lab.run("reconcile")
    lab.desire({ALICE: {KEY: 10.0, OTHER: 31.0}, BOB: {KEY: 5.0}})
    lab.put({ALICE: {KEY: 20.0, OTHER: 30.0}})
    lab.call("alter", "demo", "--names", BOB, "--delete", KEY, *WHY)
    altered = lab.call("accept", "demo", "--names", "user=carl").stderr
    lab.run("report")
    (file,) = [path for path in lab.folder.iterdir() if path.name != "cluster.yaml"]
    before = file.read_text()
    git(lab.folder.parent, "init", "--quiet")
    commit_all(lab.folder.parent)

    (missing,) = lab.call("accept", "demo", "--names", "user=carl").stderr.splitlines()[:1]
    tried = lab.call("accept", "demo", "--all", "--dry-run", "--format", "json")
    assert file.read_text() == before
    patch = json.loads(tried.stdout)["patch"].encode()
    apply = ["git", "-C", str(lab.folder.parent), "apply", "--check"]
    subprocess.run(apply, input=patch, check=True)
    done = lab.call("accept", "demo", "--all")
    after = file.read_text()

    assert "or --all for every drift." in lab.call("accept", "demo").stderr
    assert "found no drift among these quotas" in missing
    assert altered.endswith(
        " is an alter, which changed none of these quotas\n  Pass the run that found the drift "
        "with --run, or compare again: quota-ops report demo\n"
    )
    found = json.loads(tried.stdout)
    assert found["accepted"] == [{"entity": ALICE, "key": KEY}, {"entity": BOB, "key": KEY}]
    name = f"{lab.folder.name}/{file.name}"
    one, other = before.splitlines(keepends=True), after.splitlines(keepends=True)
    assert found["patch"] == "".join(unified_diff(one, other, f"a/{name}", f"b/{name}"))
    assert done.stdout.startswith(found["patch"])
    assert "2 of 2 quotas accepted; the values come from run" in done.stdout
    kinds = [row.kind for row in lab.run("plan").differences()]
    assert sorted(kinds) == ["gone", "in_sync", "pending"]

    again = lab.call("accept", "demo", "--all", "--run", found["run"])
    assert (again.returncode, again.stdout.splitlines()[0]) == (
        0,
        "0 of 2 quotas accepted, 2 already as on the cluster; the values come from run "
        + found["run"],
    )
    file.write_text(before.replace("10", "11"))
    late = lab.call("accept", "demo", "--names", ALICE, "--run", found["run"])
    assert late.returncode == 2
    assert f"left out: {ALICE} {KEY}: it changed in Git after that run" in late.stdout


def test_all_does_not_lose_a_change_in_git(lab: Lab) -> None:
    """A limit that changed on both sides is accepted by name; a run without a diff has none."""
    lab.desire({ALICE: {KEY: 10.0}})
    lab.run("reconcile")
    lab.desire({ALICE: {KEY: 20.0}})
    lab.put({ALICE: {KEY: 40.0}})
    lab.call("plan", "demo")
    (file,) = [path for path in lab.folder.iterdir() if path.name != "cluster.yaml"]
    before = file.read_text()

    left = lab.call("accept", "demo", "--all")
    assert (left.returncode, file.read_text()) == (2, before)
    assert "it changed in Git too, which would be lost: pass it with --names" in left.stdout
    assert lab.call("accept", "demo", "--names", ALICE).returncode == 0
    assert file.read_text() == before.replace("20.0", "40")

    lab.start()
    stopped = lab.call("accept", "demo", "--all")
    name = lab.runs[-1].place.name
    why = f"run {name} has not compared Git with the cluster\n  Compare again: "
    remedy = "quota-ops report demo. Or pass an earlier run with --run.\n"
    assert (stopped.returncode, stopped.stderr) == (2, why + remedy)


def test_an_alter_of_a_new_entity_comes_into_git(lab: Lab) -> None:
    """Right after it, accept writes its limits with its reason, and the next plan has no change.

    Before that, resolve shows who set it, and for another limit the line in Git and the run.
    """
    lab.desire({ALICE: {KEY: 10.0}})
    lab.run("reconcile")
    (lab.folder / "search.yaml").write_text(
        "owner: search\nquotas:\n    # the index\n    - user: index\n      limits:\n"
        "        producer_byte_rate: 5 MiB # agreed\n",
        "utf-8",
    )
    lab.call("reconcile", "demo")
    changes = ("--names", "user=newjob", "--add", f"{KEY}=2097152,{OTHER}=unlimited")
    lab.call("alter", "demo", *changes, "--reason", "INC-31", "--allow", "raise")
    before = (lab.folder / "search.yaml").read_text("utf-8")

    resolve = ("resolve", "demo", "--key", KEY, "--user")
    set_by_hand, managed = (lab.call(*resolve, user).stdout for user in ("newjob", "alice"))
    undecided = lab.call("accept", "demo", "--all")
    done = lab.call("accept", "demo", "--names", "user=newjob", "--file", "search.yaml")
    lab.call("alter", "demo", "--names", "user=index", "--add", f"{OTHER}=7", "--reason", "INC-32")
    more = lab.call("accept", "demo", "--names", "user=index")
    wrong = lab.call("accept", "demo", "--names", "user=index", "--file", "nosuch.yaml")

    first, _, altered = (run.place.name for run in lab.runs[:3])
    by_whom = f"{getpass.getuser()} with alter in run {altered}"
    assert f"    Source: not in Git; not managed: set by {by_whom}.\n" in set_by_hand
    source = f"as team.yaml:4 (team) declares; managed, recorded by run {first}"
    assert f"    Source: {source}.\n" in managed
    assert undecided.returncode == 2
    assert (
        f"left out: user=newjob {KEY}: Git does not declare it: pass a file, for example --file "
        "search.yaml"
    ) in undecided.stdout
    assert "2 of 2 quotas accepted" in done.stdout, done.stdout + done.stderr
    assert "1 of 1 quota accepted" in more.stdout, more.stdout + more.stderr
    assert (lab.folder / "search.yaml").read_text("utf-8") == (
        f"{before}        {OTHER}: 7\n"
        "    - user: newjob\n      limits:\n"
        f"        {OTHER}: unlimited\n        {KEY}: 2 MiB\n      reason: INC-31\n"
    )
    assert wrong.stderr.startswith("--file nosuch.yaml is not a quotas file of this cluster\n")
    assert {row.kind for row in lab.run("plan").differences()} == {"in_sync"}
