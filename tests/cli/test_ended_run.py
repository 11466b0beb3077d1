"""Commands on a run that has ended: it stays whole, and no old result is shown as new."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.cli.test_screens import KEY, SMALL, STATE, masked
from tests.lab import Lab, open_lab
from tests.places import on_disk


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        lab.desire(STATE, silence=SMALL)
        yield lab


@pytest.fixture(name="run")
def _run(lab: Lab) -> RunFolder:
    """Create a run that wrote two quotas, verified them and reported it."""
    return lab.run("reconcile")


def told(lab: Lab, run: RunFolder) -> tuple[str, str]:
    """Return the sentences of `runs` and `show` about a run."""
    (listed,) = json.loads(lab.call("runs", "demo", "--format", "json").stdout)
    shown = json.loads(lab.call("show", str(on_disk(run)), "--format", "json").stdout)
    return listed["sentence"], shown["answer"]["sentence"]


@pytest.mark.parametrize("stage", ["check", "describe", "diff", "plan"])
def test_a_run_that_wrote_is_not_begun_anew(stage: str, lab: Lab, run: RunFolder) -> None:
    """The command is refused, nothing is set aside, and the run can be rolled back."""
    before = sorted(on_disk(run).iterdir())

    ended = lab.call(stage, "--run", str(on_disk(run)))

    assert ended.returncode == 2
    assert ended.stderr == (
        f"{on_disk(run)} is a run that wrote: {stage} would replace files that its report and "
        f"rollback need\n  Make a new plan: quota-ops plan demo\n"
    )
    assert sorted(on_disk(run).iterdir()) == before
    planned = lab.call("rollback", str(on_disk(run)), "--reason", "INC-31")
    assert (planned.stderr, "2 to change of 2" in planned.stdout) == ("", True)


def test_a_verify_without_an_answer_shows_no_earlier_one(lab: Lab, run: RunFolder) -> None:
    """An earlier verify's result is not shown; the next verify still starts from it."""
    lost = lab.root / "lost.properties"
    lost.write_text("bootstrap.servers=127.0.0.1:1\n")

    ended = lab.call("verify", "--run", str(on_disk(run)), "--connection", str(lost))

    assert (ended.returncode, ended.stdout) == (3, "applied: 2 accepted\n")
    assert ended.stderr.startswith("connection demo: ")
    listed, shown = told(lab, run)
    assert listed == shown
    assert "verify failed" in listed
    again = lab.call("verify", "--run", str(on_disk(run)))
    assert again.stdout.endswith(
        "broker 1 agrees\n2 of 2 quotas verified on every broker: stored and in force.\n"
    )
    listed, shown = told(lab, run)
    assert listed == shown
    assert listed.startswith("demo matches ")


def test_an_apply_after_verify_shows_no_earlier_one(lab: Lab, run: RunFolder) -> None:
    """After a second apply, no view shows values as read back that were read before it."""
    digest = run.read_json("plan.json")["digest"]

    ended = lab.call("apply", "--run", str(on_disk(run)), "--approve", digest)

    assert (ended.returncode, "agrees" in ended.stdout) == (0, False), ended.stderr
    listed, shown = told(lab, run)
    assert listed == shown
    assert "not read back" in listed


@pytest.mark.usefixtures("impatient_verify")
def test_runs_and_show_agree_after_another_verify(lab: Lab, run: RunFolder) -> None:
    """`runs` and `show` agree on a quota that changed since; each verify records one end."""
    lab.put({"user=alice": {KEY: 5.0}})

    ended = lab.call("verify", "--run", str(on_disk(run)))

    assert ended.returncode == 1
    listed, shown = told(lab, run)
    assert listed == shown
    assert listed.startswith("1 quota on demo does not have the desired value on every broker; ")
    assert [path.name for path in sorted(on_disk(run).glob("end-*"))] == [
        "end-0001.json",
        "end-0002.json",
    ]


@pytest.mark.parametrize("command", ["apply", "reconcile"])
def test_what_was_written_before_is_not_claimed_again(
    command: str, lab: Lab, run: RunFolder
) -> None:
    """If a command is repeated, its last line counts earlier writes as written earlier."""
    again = (command, "--run", str(on_disk(run)), "--approve", run.read_json(PLAN)["digest"])
    read_back = "1 of 1 broker agrees; " if command == "reconcile" else ""

    for _ in range(2):
        ended = lab.call(*again)

        assert (ended.returncode, ended.stderr) == (0, "")
        assert "applied: 2 accepted earlier\n" in ended.stdout
        assert masked(ended.stdout, lab).endswith(
            "no changes written in TIME; written earlier: 2 keys on 2 entities; "
            f"{read_back}report: ROOT/store/runs/demo/RUN/report.html\n"
        )


def test_a_plan_that_somebody_else_wrote_first_changed_nothing(lab: Lab) -> None:
    """A run whose values were already stored counts no change, and cannot be rolled back."""
    folder = lab.run("plan")
    lab.put(STATE)

    ended = lab.call(
        "reconcile", "--run", str(on_disk(folder)), "--approve", folder.read(PLAN).digest
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert masked(ended.stdout, lab).endswith(
        "applied: 2 already\nbroker 1 agrees\n"
        "no changes written in TIME; already stored: 2 keys on 2 entities; 1 of 1 broker agrees; "
        "report: ROOT/store/runs/demo/RUN/report.html\n"
    )
    (listed,) = json.loads(lab.call("runs", "demo", "--format", "json").stdout)
    shown = json.loads(lab.call("show", str(on_disk(folder)), "--format", "json").stdout)
    counts = {name: number for name, number in shown["counts"].items() if number}
    assert (listed["changes"], counts) == (0, {"in_sync": 2, "found": 2})
    assert listed["sentence"].startswith(
        "demo matches the files, whose commit is unknown; 2 changes were already stored; "
    )
    assert "Changed" not in lab.call("show", str(on_disk(folder))).stdout
    undone = lab.call("rollback", str(on_disk(folder)), "--reason", "INC-31")
    assert (undone.returncode, undone.stdout) == (1, "")
    assert "wrote no changes of a plan, so there is nothing to roll back" in undone.stderr


@pytest.mark.parametrize("command", ["apply", "verify", "reconcile"])
def test_a_verified_run_stays_so_after_a_later_one(command: str, lab: Lab) -> None:
    """Once a later commit was applied, no command replaces what proves that a run was verified."""
    assert lab.call("reconcile", "demo", "--commit", "c1").returncode == 0
    (run,) = lab.runs
    lab.desire({**STATE, "user=bob": {KEY: 20.0}}, silence=SMALL)
    assert lab.call("reconcile", "demo", "--commit", "c2").returncode == 0
    before = {file: file.read_bytes() for file in on_disk(run).rglob("*") if file.is_file()}
    approve = () if command == "verify" else ("--approve", run.read(PLAN).digest)

    ended = lab.call(command, "--run", str(on_disk(run)), *approve)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "commit c2 was applied since this plan was made\n"
        "  This run was verified before, and stays so. To compare with Git now: "
        "quota-ops verify demo\n"
    )
    assert {file: file.read_bytes() for file in on_disk(run).rglob("*") if file.is_file()} == before
