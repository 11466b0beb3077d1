"""Commands on the folder of an earlier run, while another run store is the default."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.cli.run_end import next_command
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.runs.chain import CHAINS, RESUMED
from quota_ops.stages.report.run_report import load_report
from quota_ops.store.places.run_store import ENVIRONMENT, open_place
from quota_ops.store.run.files import FINDINGS, PLAN, VALIDATED
from quota_ops.store.run.folder import RunFolder
from tests.cli.test_screens import KEY
from tests.lab import Lab, error_of, open_lab
from tests.places import on_disk
from tests.writing import State

STATE: State = {"user=alice": {KEY: 10.0}}


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        lab.desire(STATE)
        yield lab


def test_a_run_keeps_to_its_store(lab: Lab) -> None:
    """A run of another store than the option or the environment names is refused, not applied.

    Its holds and its ledger are those of the store that it is in.
    """
    lab.desire({**STATE, "user=bob": {KEY: 10.0}})
    run = lab.run("plan")
    hold = ("hold", "demo", "--names", "user=alice", "--until", "1h", "--reason", "INC-31")
    assert lab.call(*hold).returncode == 0
    elsewhere = {ENVIRONMENT: str(lab.root / "elsewhere")}
    approved = ("reconcile", "--run", str(on_disk(run)), "--approve", run.read_json(PLAN)["digest"])

    for refused in (
        lab.call(*approved, "--run-store", elsewhere[ENVIRONMENT]),
        lab.call(*approved, environment=elsewhere),
    ):
        assert refused.returncode == 2
        words = f"{on_disk(run)} is in the run store {lab.store.root}, but "
        assert refused.stderr.startswith(words)
    assert lab.stored() == {}

    own = ("--run-store", str(lab.store.root))
    lab.call(*approved, *own, environment=elsewhere)
    assert lab.stored() == lab.known() == {"user=bob": {KEY: 10.0}}
    lab.call("rollback", str(on_disk(run)), "--reason", "INC-31", *own, environment=elsewhere)
    assert len(lab.store.runs("demo")) == len(("plan", "rollback"))
    assert not (lab.root / "elsewhere").exists()


def test_a_run_has_the_same_names_for_each_command(lab: Lab) -> None:
    """Its name, CLUSTER/NAME, `last` and its folder name the same run."""
    run = lab.run("plan")
    name = run.place.name
    for named in (name, f"demo/{name}", "last", str(on_disk(run))):
        for command in (("report", "--run", named), ("show", named)):
            result = lab.call(*command)
            assert (result.returncode, name in result.stdout) == (0, True), result.stderr
    for stage in ("verify", "effects", "reconcile", "describe"):
        unknown = lab.call(stage, "--run", "nosuch")
        assert unknown.stderr.startswith("there is no run 'nosuch' in the run store ")
    digest = run.read_json(PLAN)["digest"]
    assert lab.call("reconcile", "--run", f"demo/{name}", "--approve", digest).returncode == 0
    assert lab.stored() == STATE
    assert lab.call("verify", "--run", name).returncode == 0


def test_a_copy_of_a_run_is_only_read(lab: Lab) -> None:
    """A copy has no ledger: it can be shown, and nothing else; no plan is written beside it."""
    run = lab.run("plan")
    copy = str(shutil.copytree(on_disk(run), lab.root / "copy"))
    for out, where in (
        (lab.folder / "plan", f"the desired state {lab.folder.parent}"),
        (on_disk(run) / "plan", f"the run store {lab.store.root}"),
    ):
        refused = lab.call("plan", "demo", "--out", str(out))
        assert refused.returncode == 2
        assert refused.stderr == f"--out {out} is inside {where}\n  Choose a folder elsewhere.\n"
    digest = run.read_json(PLAN)["digest"]

    assert lab.call("show", copy).returncode == 0
    for command in (
        ("reconcile", "--run", copy, "--approve", digest),
        ("rollback", copy, "--reason", "INC-31"),
        ("describe", "--run", copy),
    ):
        refused = lab.call(*command)
        assert refused.returncode == 2
        assert refused.stderr.startswith(f"{copy} is not in a run store, ")
    assert lab.stored() == {}


def test_a_copy_inside_the_run_store_is_no_run(lab: Lab) -> None:
    """A run is its number, not its folder: a copy is neither applied, rolled back nor accepted.

    The Python API does not apply it either.
    """
    run = lab.run("plan")
    digest = run.read_json(PLAN)["digest"]
    copy = Path(shutil.copytree(on_disk(run), on_disk(run).parent / "copy"))
    moved = Path(shutil.copytree(on_disk(run), on_disk(run).parent.parent / "other" / copy.name))

    for named in (str(copy), "demo/copy", str(moved)):
        for command in (
            ("reconcile", "--run", named, "--approve", digest),
            ("verify", "--run", named),
            ("rollback", named, "--reason", "INC-31"),
            ("accept", "demo", "--all", "--run", named),
            ("alter", "demo", "--undo", named, "--reason", "INC-31"),
            ("hold", "demo", "--run", named, "--until", "1h", "--reason", "INC-31"),
            ("show", named),
        ):
            refused = lab.call(*command)
            where = moved if named == str(moved) else copy
            assert (refused.returncode, refused.stderr.splitlines()[:1]) == (
                2,
                [f"{where} is a copy of the folder of run demo/{run.place.name}"],
            ), command
    for place in (copy, moved):
        of_api = lab.resume(RunFolder(open_place(str(place))), approve=digest)
        assert error_of(of_api, RESUMED).message.startswith(f"{place} is a copy of the folder of")
    assert lab.stored() == {}
    assert [folder.name for folder in copy.parent.iterdir() if folder.name != "copy"] == [
        run.place.name
    ]


def test_a_plan_that_could_not_be_stored_completely_is_not_offered(lab: Lab) -> None:
    """If a file of the plan cannot be written, no broker validates it, and no command writes it."""
    run = lab.start()
    obstacle = on_disk(run.folder) / FINDINGS
    obstacle.mkdir()

    error = error_of(run, CHAINS["plan"])

    assert error.message.startswith(f"{obstacle} cannot be written: ")
    assert not run.folder.has(VALIDATED)
    assert next_command("plan", run.folder, load_report(run.folder)) == ()
    obstacle.rmdir()
    resumed = lab.call("reconcile", "--run", str(on_disk(run.folder)))
    assert resumed.stderr == (
        "reconcile --run needs --approve DIGEST\n"
        f"  This run has no plan to approve. How it ended: quota-ops show {on_disk(run.folder)}\n"
    )
