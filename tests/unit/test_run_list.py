"""Earlier runs: each is summarised, however it ended, and found by what a user types."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.stages import StageResult, StageStatus
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import BATCH
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.listing import list_runs, summarize_run
from quota_ops.store.run.names import find_run
from tests.places import on_disk
from tests.records import complete
from tests.yaml_cases import load_yaml

CASES = load_yaml(
    (Path(__file__).parents[1] / "cases" / "run_list" / "runs.yaml").read_text("utf-8")
)
ABOUT = {"run": "one", "cluster": "demo", "commit": "c1", "started": "2026-11-21T10:00:00Z"}
ACCEPTED = {"batch": 1, "entity": "user=a", "keys": ["k"], "status": "accepted"}
NOTHING: dict[str, Any] = {
    "sentence": None,
    "stopped": None,
    "digest": None,
    "changes": 0,
    "decisions": [],
    "by": None,
    "cluster_id": None,
    "trouble": None,
}


def leave(path: Path, files: dict[str, Any]) -> Path:
    """Create a run folder with these files."""
    path.mkdir(parents=True)
    for name, content in files.items():
        if isinstance(content, str):
            (path / name).write_text(content, "utf-8")
        elif isinstance(content, list):
            rows = [Difference(*row)._replace(batch=1) for row in content]
            RunFolder(open_place(path)).write_table(DIFFERENCES, rows)
        elif content is not None:
            RunFolder(open_place(path)).write_json(name, complete(name, content))
    return path


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_told_of_a_run(case: dict[str, Any], tmp_path: Path) -> None:
    """A run is summarised from its files; damage is named, and never hides the rest."""
    path = leave(tmp_path / "demo" / "one", {"run.json": ABOUT} | case["files"])

    told = json.loads(json.dumps(summarize_run(open_place(path)).as_json()))

    size = sum(one.stat().st_size for one in path.iterdir())
    assert told == {**ABOUT, "path": str(path), **NOTHING, "size": size, **case["run"]}


def test_when_a_damaged_run_started(tmp_path: Path) -> None:
    """The start of a run without a readable run.json is taken from the run's name."""
    path = leave(tmp_path / "demo" / "2026-11-22T10-11-12Z-beef", {"run.json": "{"})

    assert summarize_run(open_place(path)).started == "2026-11-22T10:11:12Z"


def test_when_a_run_ended(tmp_path: Path) -> None:
    """A report shows when the last stage of its run ended, else its start, whenever it is read."""
    folder = RunFolder(open_place(leave(tmp_path / "demo" / "one", {"run.json": ABOUT})))
    assert read_report(folder).finished == "2026-11-21T10:00:00Z"

    folder.keep_end(StageResult("adopt", StageStatus.DONE))
    at = folder.read_json("stage-adopt.json")["at"]
    folder.write_json("stage-apply.json", {"at": "yesterday"})
    folder.write_json("stage-report.json", {"at": "2999-01-01T00:00:00Z"})  # it is made again
    assert read_report(folder).finished == at > "2026-11-22"


def test_a_damaged_file_fails_its_stage(tmp_path: Path) -> None:
    """A report shows each stage as failed whose file cannot be read, and why."""
    damaged = {"checked.json": "check", "facts.json": "describe", "rollback.json": "diff"}
    damaged |= {"findings.json": "plan", "validated.json": "validate", "approval.json": "apply"}
    files = {"run.json": ABOUT, **dict.fromkeys(damaged, "{")}
    report = read_report(RunFolder(open_place(leave(tmp_path / "demo" / "one", files))))

    failed = {stage.stage: stage.message for stage in report.stages if stage.message}
    assert [*failed] == [*damaged.values()]
    assert all(name in (failed[stage] or "") for name, stage in damaged.items())


def store_of(root: Path, *names: str) -> RunStore:
    """Return a store with runs CLUSTER/NAME, each started later, by clocks that run back."""
    for number, name in enumerate(names, start=1):
        started = f"2026-11-21T10:{59 - number:02}:00Z"
        own = dict(zip(("cluster", "run"), name.split("/"), strict=True))
        about = ABOUT | own | {"started": started, "sequence": number}
        leave(root / "runs" / name, {"run.json": about})
    (root / "runs" / "demo" / "a note").touch()
    return RunStore(open_place(root))


def test_a_copied_store_orders_its_runs_alike(tmp_path: Path) -> None:
    """Runs are ordered by what they contain: neither file times nor workers' clocks matter."""
    names = ("demo/scheduled__9", "other/b", "demo/c", "demo/a")
    store = store_of(tmp_path / "one", *names)
    shutil.copytree(on_disk(store.root), tmp_path / "two", copy_function=shutil.copyfile)
    for age, name in enumerate(names):
        for path in (
            tmp_path / "two" / "runs" / name,
            tmp_path / "two" / "runs" / name / "run.json",
        ):
            os.utime(path, (1e9 - age, 1e9 - age))

    copied, _ = list_runs(RunStore(open_place(tmp_path / "two")), None, 9)
    assert [run.run for run in copied] == ["a", "c", "b", "scheduled__9"]
    assert [run.run for run in list_runs(store, None, 9)[0]] == [run.run for run in copied]
    assert on_disk(find_run(RunStore(open_place(tmp_path / "two")), "demo/last")).name == "a"


def test_the_last_run_that_wrote(tmp_path: Path) -> None:
    """`last` in a rollback is a run that wrote or may have written, and no other."""
    store = store_of(tmp_path, "demo/wrote", "demo/nothing", "demo/plan", "other/plan")
    applied = {"wrote": [ACCEPTED], "nothing": [ACCEPTED | {"status": "already"}]}
    for name, outcomes in applied.items():
        folder = RunFolder(open_place(tmp_path / "runs" / "demo" / name))
        folder.write_json("applied.json", complete("applied.json", {"outcomes": outcomes}))

    def last() -> str:
        return on_disk(find_run(store, "demo/last", last_write=True)).name

    assert last() == "wrote"
    RunFolder(open_place(tmp_path / "runs" / "demo" / "nothing")).write_text("applied.json", "{")
    assert last() == "nothing", "what is damaged may have written"
    RunFolder(open_place(tmp_path / "runs" / "demo" / "plan")).leave_outcomes(BATCH.of(1), ())
    assert last() == "plan", "it was killed while it wrote"
    with pytest.raises(InvalidInput, match="has written to a cluster"):
        find_run(store, "other/last", last_write=True)


def test_the_last_runs(tmp_path: Path) -> None:
    """The last ones come first, whatever their names, with the number of the others."""
    store = store_of(tmp_path, "demo/scheduled__9", "other/b", "demo/c", "demo/a")

    runs, more = list_runs(store, None, 3)
    assert ([run.run for run in runs], more) == (["a", "c", "b"], 1)
    runs, more = list_runs(store, "demo", 3)
    assert ([run.run for run in runs], more) == (["a", "c", "scheduled__9"], 0)
    assert list_runs(RunStore(open_place(tmp_path / "new")), None, 3) == ((), 0)
    with pytest.raises(InvalidInput, match="no run of a cluster 'nowhere'"):
        list_runs(store, "nowhere", 3)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("last", "demo/2026-1-c0de"),
        ("other/last", "other/drift__1"),
        ("2026-1-beef", "demo/2026-1-beef"),
        ("c0de", "demo/2026-1-c0de"),
        ("2026-1-b", "demo/2026-1-beef"),
        ("other/drift__1", "other/drift__1"),
        ("demo/drift", "demo/drift__1"),
        ("x", "demo/x"),
        ("ax", "demo/max"),
    ],
)
def test_a_run_is_found(wanted: str, found: str, tmp_path: Path) -> None:
    """A run is found by its name, by a unique beginning or part of the name, or by `last`."""
    runs = ["demo/max", "demo/x", "demo/drift__1", "other/drift__1", "demo/2026-1-beef"]
    store = store_of(tmp_path, *runs, "demo/2026-1-c0de")

    path = f"{store.root}/runs/{found}"
    assert str(find_run(store, wanted).place) == str(find_run(store, path).place) == path


def test_a_folder_here_is_no_run_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run in the working directory is found by its path, and never hides one of the store."""
    store = store_of(tmp_path / "store", "demo/one", "demo/two")
    for name in ("demo/last", "last", "one"):
        leave(tmp_path / name, {"run.json": ABOUT | {"run": Path(name).name}})
    monkeypatch.chdir(tmp_path)

    found = {name: str(find_run(store, name).place) for name in ("last", "demo/last", "one")}
    two = f"{store.root}/runs/demo/two"
    assert found == {"last": two, "demo/last": two, "one": f"{store.root}/runs/demo/one"}
    for path in ("./last", "store/runs/demo/two", "./demo/last"):
        assert str(find_run(store, path).place) == f"{tmp_path}/{path.removeprefix('./')}"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("drift__1", "'drift__1' matches 2 runs: demo/drift__1, other/drift__1"),
        ("r", "'r' matches 7 runs: demo/r1, demo/r2, demo/r3, demo/r4, demo/r5 and 2 more"),
        ("xyz", "there is no run 'xyz' in the run store ROOT"),
        ("", "the name of the run is empty"),
        (" ", "the name of the run is empty"),
        ("x" * 5000, f"there is no run '{'x' * 5000}' in the run store ROOT"),
        ("nowhere/last", "the run store ROOT has no run of a cluster 'nowhere'"),
        ("../demo/last", "../demo/last is not a run folder: it has no run.json"),
    ],
)
def test_a_run_that_is_not_found(wanted: str, message: str, tmp_path: Path) -> None:
    """For no match or several, the error lists the candidates."""
    names = [f"demo/r{number}" for number in range(1, 8)]
    store = store_of(tmp_path, *names, "demo/drift__1", "other/drift__1")

    with pytest.raises(InvalidInput) as error:
        find_run(store, wanted)
    assert error.value.message.replace(str(tmp_path), "ROOT") == message


def test_a_cluster_is_no_run(tmp_path: Path) -> None:
    """The remedy for the name of a cluster is the last run of that cluster."""
    with pytest.raises(InvalidInput) as error:
        find_run(store_of(tmp_path, "demo/one"), "demo")
    assert error.value.remedy == "demo is a cluster. For its last run: demo/last"


def test_last_of_no_runs(tmp_path: Path) -> None:
    """A store without runs has no last one."""
    with pytest.raises(InvalidInput, match="there is no run 'last'"):
        find_run(RunStore(open_place(tmp_path)), "last")
