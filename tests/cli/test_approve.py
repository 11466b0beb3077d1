"""A plan that needs approval, at a terminal, in a pipe and by options."""

from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.cli.test_screens import KEY, STATE, on_a_terminal, said
from tests.lab import Lab, open_lab
from tests.places import on_disk
from tests.writing import State

EVERYONE: State = {"user=<default>": {KEY: 10.0}}


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        lab.desire(STATE, approval="always")
        yield lab


def last_run(lab: Lab) -> RunFolder:
    """Return the folder of the last run."""
    runs = on_disk(lab.store.root / "runs" / "demo").iterdir()
    return RunFolder(open_place(max(runs, key=lambda path: path.stat().st_mtime)))


def last_decisions(lab: Lab) -> tuple[Decision, ...]:
    """Return the decisions about the plan of the last run."""
    return last_run(lab).decisions()


def test_in_a_pipe(lab: Lab) -> None:
    """A pipe cannot answer: refused, with the command that approves; an approval counts once."""
    refused = lab.cli("reconcile", "demo")
    assert refused.returncode == 1
    digest = last_run(lab).read_json(PLAN)["digest"]
    why = f"cluster.yaml sets approval: always, and plan {digest[:8]} is not approved"
    assert why in refused.stderr
    assert lab.stored() == {}

    command = refused.stderr.partition("quota-ops ")[2].split()
    assert command[command.index("--approve") + 1] == digest
    unexplained = command[: command.index("--reason")]
    for approved, why in (
        (digest, "cluster.yaml sets approval: always, so --approve needs --reason too\n"),
        ("deadbeef", f"the approval is for deadbeef, but this plan is {digest[:8]}\n"),
        (digest[:31], f"{digest[:31]} is too short to approve a plan: pass at least 32"),
    ):
        refused = lab.call(*unexplained[:-1], approved)
        assert (refused.returncode, lab.stored()) == (1, {})
        assert refused.stderr.startswith(why)
    command[-1] = "agreed in PLAT-12"
    said(lab, *command)
    assert lab.stored() == STATE
    (kept,) = last_decisions(lab)
    assert (kept.said, kept.by, kept.reason) == (
        DecisionKind.APPROVED,
        getuser(),
        "agreed in PLAT-12",
    )

    lab.put({"user=alice": {KEY: None}, "user=bob": {KEY: None}})
    again = lab.call("reconcile", "demo")
    assert "is not approved" in again.stderr
    assert (again.returncode, lab.stored()) == (1, {})


def test_at_a_terminal(lab: Lab) -> None:
    """At a terminal, the plan is shown with its digest before the prompt; Enter and `no` reject it.

    After `y`, a prompt for the reason is repeated until there is one.
    """
    for typed in ("\n", "no\n"):
        code, shown = on_a_terminal(lab, "reconcile", "demo", typed=typed)
        assert (code, lab.stored()) == (1, {})
        (rejected,) = last_decisions(lab)
        assert rejected.said is DecisionKind.REJECTED
        assert f"Apply plan {rejected.digest[:8]} to demo? [y/N]: " in shown
        assert f"{getuser()} rejected plan {rejected.digest[:8]}" in shown
    assert "  Rejected  " in said(lab, "runs", "--last", "1")

    code, shown = on_a_terminal(lab, "reconcile", "demo", typed="y\n\nagreed in PLAT-12\n")
    assert shown.count("Reason (it is recorded with your name): ") == 2
    assert (code, lab.stored()) == (0, STATE)
    assert last_decisions(lab)[0].reason == "agreed in PLAT-12"


def test_what_a_guard_refuses(lab: Lab) -> None:
    """A plan that a guard blocks is approved by typing the cluster's name; `never` has no prompt.

    Any other text than the name or `no` repeats the prompt.
    """
    lab.desire(EVERYONE, approval="never")
    code, shown = on_a_terminal(lab, "reconcile", "demo", typed="demo\nagreed in PLAT-12\n")
    assert (code, "to apply plan" in shown, lab.stored()) == (1, False, {})
    run = last_run(lab)
    named = ("--approve", run.read_json(PLAN)["digest"], "--reason", "agreed")
    refused = lab.call("reconcile", "--run", str(on_disk(run)), *named)
    assert (refused.returncode, lab.stored()) == (1, {})
    assert refused.stderr.startswith(
        "cluster.yaml sets approval: never, so only --allow overrides guards: default_touched: "
    )

    lab.desire(EVERYONE)
    assert "--reason TEXT\n" in said(lab, "plan", "demo", exit_code=1)
    for typed, asked_again in (("no\n", 0), ("y\ndmo\nno\n", 2), ("agreed in PLAT-12\n\n", 1)):
        code, shown = on_a_terminal(lab, "reconcile", "demo", typed=typed)
        assert "Type the name of the cluster, demo, to apply plan" in shown
        assert (
            shown.count("that is not demo: type demo to apply, or press Enter to reject")
            == asked_again
        )
        assert "not sent" not in shown
        assert (code, lab.stored()) == (1, {})
    typed = "demo\nagreed in PLAT-12\n"
    code, shown = on_a_terminal(lab, "reconcile", "demo", typed=typed)
    assert (code, lab.stored()) == (0, EVERYONE)
    assert last_decisions(lab)[0].guards == ("default_touched",)


def test_an_approval_of_another_plan(lab: Lab) -> None:
    """A digest of another plan approves nothing."""
    refused = lab.call("reconcile", "demo", "--approve", "0" * 8, "--reason", "because")
    assert refused.returncode == 1
    assert refused.stderr.startswith("the approval is for 00000000, but this plan is ")
    assert (lab.stored(), last_decisions(lab)) == ({}, ())


def test_an_approval_that_names_guards(lab: Lab) -> None:
    """With --allow the named guards are overridden, and no other guard.

    A later plan with the same digest may be blocked by guards that were not shown before.
    """
    before: State = {"user=alice": {KEY: 9.0}}
    after: State = {**STATE, **EVERYONE}
    lab.put(before)
    lab.desire(after, approval="on_breach")
    said(lab, "plan", "demo", exit_code=1)
    run = last_run(lab)
    options = ("--approve", run.read_json(PLAN)["digest"], "--reason", "agreed")
    one, other = ("--allow", "default_touched"), ("--allow", "takeover")

    refused = lab.call("reconcile", "demo", *options)
    assert "To override: --allow takeover --allow default_touched" in refused.stderr
    assert (refused.returncode, lab.stored(), last_decisions(lab)) == (1, before, ())
    for command in (("demo",), ("--run", str(on_disk(run)))):
        refused = lab.call("reconcile", *command, *options, *one)
        assert refused.returncode == 1
        assert "To override: --allow takeover --reason TEXT" in refused.stderr
        overrides = {decision.guards for decision in last_decisions(lab)}
        assert (lab.stored(), overrides) == (before, {("default_touched",)})

    said(lab, "reconcile", "--run", str(on_disk(run)), *options, *one, *other)
    assert lab.stored() == after
