"""A plan that needs a person, at a terminal, in a pipe and by options."""

from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest

from quota_ops.model.approval import Decision, Said
from quota_ops.run_folder import PLAN, RunFolder
from quota_ops.sandbox.broker import RunningBroker
from tests.cli.test_screens import KEY, STATE, on_a_terminal, said
from tests.lab import Lab, open_lab
from tests.writing import State

EVERYONE: State = {"user=<default>": {KEY: 10.0}}


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        lab.desire(STATE, approval="always")
        yield lab


def last_run(lab: Lab) -> RunFolder:
    """The folder of the last run."""
    runs = (lab.store.root / "runs" / "demo").iterdir()
    return RunFolder(max(runs, key=lambda one: one.stat().st_mtime))


def last_decisions(lab: Lab) -> tuple[Decision, ...]:
    """What was said of the plan of the last run."""
    return last_run(lab).decisions()


def test_in_a_pipe(lab: Lab) -> None:
    """Nobody can be asked: refused, with the command that approves; later its digest is known."""
    refused = lab.cli("reconcile", "demo")
    assert refused.returncode == 1
    assert "cluster.yaml says approval: always, and nobody has approved plan" in refused.stderr
    assert lab.stored() == {}

    command = refused.stderr.partition("quota-ops ")[2].split()
    short = command[command.index("--approve") + 1]
    unexplained = command[: command.index("--reason")]
    for approved, why in (
        (short, "cluster.yaml says approval: always, so --approve needs --reason too\n"),
        ("deadbeef", f"the approval is for deadbeef, this plan is {short}\n"),
    ):
        refused = lab.cli(*unexplained[:-1], approved)
        assert (refused.returncode, lab.stored()) == (1, {})
        assert refused.stderr.startswith(why)
    command[-1] = "agreed in PLAT-12"
    said(lab, *command)
    assert lab.stored() == STATE
    (kept,) = last_decisions(lab)
    assert (kept.said, kept.by, kept.reason) == (Said.APPROVED, getuser(), "agreed in PLAT-12")

    lab.put({"user=alice": {KEY: None}, "user=bob": {KEY: None}})
    assert "agreed in PLAT-12" in said(lab, "reconcile", "demo", "--format", "json")
    assert lab.stored() == STATE


def test_at_a_terminal(lab: Lab) -> None:
    """The plan is shown with its digest; a reason approves it, Enter alone does not."""
    code, shown = on_a_terminal(lab, "reconcile", "demo", typed="\n")
    assert (code, lab.stored()) == (1, {})
    digest = last_decisions(lab)[0].digest[:8]
    assert f"Why may plan {digest} be applied?" in shown
    assert f"{getuser()} rejected plan {digest}" in shown

    code, shown = on_a_terminal(lab, "reconcile", "demo", typed="agreed in PLAT-12\n")
    assert (code, lab.stored()) == (0, STATE)
    assert last_decisions(lab)[0].reason == "agreed in PLAT-12"


def test_what_a_guard_refuses(lab: Lab) -> None:
    """With `on_breach` a guard's word is asked for; with `never` nobody is asked."""
    lab.desire(EVERYONE, approval="never")
    code, shown = on_a_terminal(lab, "reconcile", "demo", typed="agreed in PLAT-12\n")
    assert (code, "Why may" in shown, lab.stored()) == (1, False, {})

    lab.desire(EVERYONE)
    assert "--reason TEXT\n" in said(lab, "plan", "demo", exit_code=1)
    code, shown = on_a_terminal(lab, "reconcile", "demo", typed="agreed in PLAT-12\n")
    assert (code, lab.stored()) == (0, EVERYONE)
    assert last_decisions(lab)[0].guards == ("default_touched",)


def test_an_approval_of_another_plan(lab: Lab) -> None:
    """A digest that is not the plan's approves nothing."""
    refused = lab.cli("reconcile", "demo", "--approve", "0" * 8, "--reason", "because")
    assert refused.returncode == 1
    assert refused.stderr.startswith("the approval is for 00000000, this plan is ")
    assert (lab.stored(), last_decisions(lab)) == ({}, ())


def test_an_approval_that_names_guards(lab: Lab) -> None:
    """With --allow the named guards pass, and no other one that asks.

    A plan that is made anew may have guards that its digest was not shown with.
    """
    before: State = {"user=alice": {KEY: 9.0}}
    after: State = {**STATE, **EVERYONE}
    lab.put(before)
    lab.desire(after, approval="on_breach")
    said(lab, "plan", "demo", exit_code=1)
    run = last_run(lab)
    options = ("--approve", run.read_json(PLAN)["digest"], "--reason", "agreed")
    one, other = ("--allow", "default_touched"), ("--allow", "takeover")

    shown = said(lab, "reconcile", "demo", *options, exit_code=1)
    assert "Let them pass with --allow takeover --allow default_touched --reason TEXT" in shown
    assert (lab.stored(), last_decisions(lab)) == (before, ())
    for command in (("demo",), ("--run", str(run.path))):
        shown = said(lab, "reconcile", *command, *options, *one, exit_code=1)
        assert "Let it pass with --allow takeover --reason TEXT" in shown
        assert (lab.stored(), last_decisions(lab)) == (before, ())

    said(lab, "reconcile", "--run", str(run.path), *options, *one, *other)
    assert lab.stored() == after
