"""The commands with a run store in a bucket, on a real broker and real servers."""

import shlex
from collections.abc import Callable

import pytest

from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import ENVIRONMENT, find_run_store
from quota_ops.store.run.files import PAGE
from quota_ops.store.run.folder import RunFolder
from tests.cli.test_screens import KEY
from tests.lab import Lab


@pytest.mark.each_bucket
def test_a_quota_lives_in_a_bucket(lab: Lab, address: str) -> None:
    """Reconcile, hold, runs, show and prune work as with a folder, and leave no file."""
    store = find_run_store(address)

    def run(*arguments: str) -> str:
        ended = lab.cli(*arguments, environment={ENVIRONMENT: address})
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    lab.desire({"user=alice": {KEY: 1000.0}, "user=bob": {KEY: 2000.0}})
    assert f"report: {address}/runs/demo/" in run("reconcile", "demo")
    lab.desire({"user=alice": {KEY: 1100.0}, "user=bob": {KEY: 2100.0}})
    run("hold", "demo", "--names", "user=bob", "--until", "1h", "--reason", "INC-31")
    run("reconcile", "demo")
    assert lab.stored() == {"user=alice": {KEY: 1100.0}, "user=bob": {KEY: 2000.0}}

    lab.desire({"user=alice": {KEY: 1200.0}, "user=bob": {KEY: 2100.0}})
    planned = run("plan", "demo")
    run(*shlex.split(planned.partition("\nnext: quota-ops ")[2]))

    rows = ledger.read(store.of_cluster(lab.cluster.cluster_id)).rows
    known = {row.entity: row.value for row in rows if row.state == VERIFIED}
    assert known == {"user=alice": 1200.0, "user=bob": 2000.0}

    listed = run("runs", "demo")
    runs = store.runs("demo")
    assert len(runs) == 3
    assert all(one.name in listed for one in runs)
    assert "user=alice" in run("show", "last")
    assert all(RunFolder(one).has(PAGE) for one in runs)
    assert run("prune", "--keep", "1d").startswith(f"Nothing to remove from {address}")
    assert {path.name for path in lab.root.iterdir()} == {"desired_state", "demo.properties"}


NAMES = ("--names", "user=alice")
WHY = ("--reason", "INC-31")


@pytest.mark.parametrize(
    "command",
    [
        ("reconcile", "demo"),
        ("plan", "demo"),
        ("alter", "demo", *NAMES, "--add", f"{KEY}=1000", *WHY),
        ("adopt", "demo", *NAMES, *WHY),
        ("release", "demo", *NAMES, "--from-ledger", *WHY),
        ("hold", "demo", *NAMES, "--until", "1h", *WHY),
    ],
    ids=lambda command: command[0],
)
def test_nothing_is_sent_without_write_permission(
    command: tuple[str, ...], lab: Lab, address: str, login: Callable[[str], None]
) -> None:
    """A command that could not record what it writes is refused, and the cluster stays as it is."""
    login("reader")
    lab.desire({"user=alice": {KEY: 1000.0}})

    ended = lab.call(*command, "--run-store", address)

    assert (ended.returncode, ended.stdout) == (2, "")
    assert "cannot be written: these credentials lack the permission\n" in ended.stderr
    assert ("Or only read it, with --out FOLDER." in ended.stderr) is (command[0] == "plan")
    assert lab.stored() == {}
    assert find_run_store(address).root.walk() == ()


def test_a_reader_plans_with_the_ledger_of_all_runs(
    lab: Lab, address: str, login: Callable[[str], None]
) -> None:
    """With --out, a removed quota is cleared in the plan and a hold counts; nothing is stored."""
    lab.desire({"user=alice": {KEY: 1000.0}, "user=bob": {KEY: 2000.0}, "user=carol": {KEY: 1.0}})
    at = ("--run-store", address)
    assert lab.call("reconcile", "demo", *at).returncode == 0
    hold = ("--names", "user=carol", "--until", "1h", *WHY)
    assert lab.call("hold", "demo", *hold, *at).returncode == 0
    lab.desire({"user=alice": {KEY: 1100.0}, "user=carol": {KEY: 2.0}})
    lab.put({"user=dan": {KEY: 7.0}})
    root = find_run_store(address).root
    stored = root.walk()
    login("reader")

    planned = lab.call("plan", "demo", "--out", "out/plan", *at)
    reported = lab.call("report", "demo", "--out", "out/report", *at)

    assert (planned.returncode, planned.stderr) == (1, ""), "the guard unlimited blocks it"
    rows = [line.lstrip("! ").split() for line in planned.stdout.splitlines() if "  user=" in line]
    kinds = {words[1]: words[0] for words in rows}
    assert kinds["user=bob"] == "removed"
    assert kinds["user=alice"] == "pending"
    assert "user=carol is held until" in planned.stdout
    assert planned.stdout.endswith(f"run: {lab.root}/out/plan\n")
    assert (reported.returncode, reported.stderr) == (1, "")
    page = (lab.root / "out" / "report" / "report.txt").read_text("utf-8")
    assert "user=bob" in page
    assert root.walk() == stored

    again = lab.call("plan", "demo", "--out", "out/plan", *at)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == f"--out {lab.root}/out/plan is not empty\n  Choose a new folder.\n"
    applied = lab.call("reconcile", "--run", "out/plan", "--approve", "a" * 64)
    assert (applied.returncode, "is not in a run store" in applied.stderr) == (2, True)
