"""A run store written before the store interface: read correctly, and left unchanged."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from quota_ops.model.approval import DecisionKind
from quota_ops.model.report import Life
from quota_ops.model.tables import OVERRIDES
from quota_ops.store import claims, decisions, holds, ledger, ledger_end
from quota_ops.store.earlier_attempts import move_attempt
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_list import list_runs
from quota_ops.store.run_marks import find_liveness, find_marked_runs
from quota_ops.store.run_numbers import newest_runs
from quota_ops.store.run_store import RunStore, open_place
from tests.places import on_disk

OLD = Path(__file__).parents[1] / "cases" / "old_store"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
RUN = "2026-11-22T19-32-23Z-cdd2"
SNAPSHOT = '{"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1048576}\n'


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> RunStore:
    shutil.copytree(OLD, tmp_path / "store")
    return RunStore(open_place(tmp_path / "store"))


def files(folder: Path) -> set[str]:
    """Return the files below a folder."""
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


@pytest.mark.time_machine("2026-11-23T00:00:00Z")
def test_an_old_store_is_read(store: RunStore) -> None:
    """Run, ledger, its end, claim, hold, approval, number and mark are read unchanged."""
    ((run,), more), place = list_runs(store, "demo", 9), store.ledger(CLUSTER_ID)
    (row,), folder = ledger.read(place).rows, RunFolder(store.runs("demo")[0])
    (hold,), plan = holds.read(store.holds(CLUSTER_ID)), folder.plan()[0]
    (said,) = decisions.find_valid_decisions(folder, store.approvals(CLUSTER_ID), plan)

    assert (run.run, run.came_to, run.trouble, more) == (RUN, "planned", None, 0)
    assert (row.entity, row.value, row.state) == ("user=alice", 1048576.0, "verified")
    assert ledger.last(place).name == ledger_end.read(place) == "00000001.parquet"
    assert (claims.last_number(place), claims.read(place, 1).run) == (1, RUN)
    assert (hold.who.text, hold.by, hold.reason) == ("user=bob", "anna", "kept")
    assert (said.said, said.by, said.digest) == (DecisionKind.APPROVED, "anna", plan.digest)
    assert newest_runs(store.sequence, 9) == [f"demo/{RUN}"]
    assert find_marked_runs(store.runs_of("demo")) == [folder.place]
    assert find_liveness(folder.place) is Life.GONE, "its mark is older than an hour"


def test_a_new_run_leaves_the_same_files(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new run uses the same folders and names; existing files are not touched."""
    monkeypatch.chdir(tmp_path)
    cluster = tmp_path / "desired_state" / "demo"
    cluster.mkdir(parents=True)
    (cluster / "cluster.yaml").write_text(f"cluster_id: {CLUSTER_ID}\nconnection: nowhere\n")
    quotas = "quotas:\n  - {user: alice, limits: {producer_byte_rate: 2 MiB}}\n"
    (cluster / "team.yaml").write_text(f"owner: team\n{quotas}")
    Path("snapshot.jsonl").write_text(
        SNAPSHOT + SNAPSHOT.replace("alice", "carol").replace("1048576", "5")
    )

    planned = CliRunner().invoke(
        main, ["plan", "demo", "--actual", "snapshot.jsonl", "--run-store", str(store.root)]
    )

    assert planned.exit_code == 0, planned.output
    (new,) = (one for one in store.runs("demo") if one.name != RUN)
    assert files(on_disk(new)) == {*files(OLD / "runs" / "demo" / RUN), OVERRIDES.file}
    root = on_disk(store.root)
    number = "sequence/00000000.runs/00000002.json"
    added = files(root) - {f"runs/demo/{new.name}/{name}" for name in files(on_disk(new))}
    assert added == files(OLD) | {number}
    assert all((root / name).read_bytes() == (OLD / name).read_bytes() for name in files(OLD))


def test_what_was_set_aside_halfway_is_set_aside_whole(store: RunStore) -> None:
    """If either version is killed while it moves files, the next attempt finishes the move."""
    folder = RunFolder(store.runs("demo")[0])
    before = files(on_disk(folder))
    moved, copied = folder.place / "plan.json", folder.place / "findings.json"
    (folder.place / "attempt-0001" / "plan.json").create(moved.read())
    moved.delete()
    (folder.place / "attempt-0001" / "findings.json").create(copied.read())

    move_attempt(folder, "check")

    kept = {"run.json", "began.json"}
    assert files(on_disk(folder)) == kept | {f"attempt-0001/{one}" for one in before - kept}
    for name in before - kept:
        old = (OLD / "runs" / "demo" / RUN / name).read_bytes()
        assert (folder.place / "attempt-0001" / name).read() == old
