"""What prune removes from a run store, and what it never removes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quota_ops import cli
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.store.ledger import claims, holds, ledger
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.retention import LEDGER_FILES, find_expired, remove
from quota_ops.store.run.claim import claim_run
from quota_ops.store.run.files import FILES
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.listing import summarize_run
from tests.places import on_disk
from tests.records import complete
from tests.unit.test_ledger import add, row
from tests.unit.test_model_hold import user

NOW = datetime(2026, 11, 22, tzinfo=UTC)
BEFORE = NOW - timedelta(days=90)
OLD, NEW = "2026-01-01T00:00:00Z", "2026-11-21T00:00:00Z"
VERIFIED = {"stage": "verify", "status": "done", "seconds": 1.0, "message": None}
APPLIED = VERIFIED | {"stage": "apply"}
END = {
    "answer": {"status": "In sync", "sentence": "demo matches Git."},
    "stages": [APPLIED],
    "plan": {"digest": "abc", "guards": []},
    "changed": 2,
}


def leave(store: RunStore, run: str, started: str, sequence: int, **files: Any) -> Place:
    """Create a run of demo with some artifacts, `report` for report.json."""
    path = store.root / "runs" / "demo" / run
    about = {"run": run, "cluster": "demo", "commit": "c", "started": started}
    for name, content in {"run": {**about, "sequence": sequence}, **files}.items():
        file = f"{name.replace('_', '-')}.json"
        RunFolder(path).write_json(file, complete(file, content))
    return path


def names(folder: Place) -> list[str]:
    """Return the names in a folder."""
    return list(folder.list())


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> RunStore:
    return RunStore(open_place(tmp_path / "store"))


def prune(store: RunStore) -> None:
    """Remove what started more than ninety days ago."""
    assert remove(find_expired(store, BEFORE), NOW) == ()


def test_an_old_plan_goes_and_a_new_one_stays(store: RunStore) -> None:
    """A run that only planned is removed entirely; a younger one is untouched."""
    leave(store, "old", OLD, 1, plan={"digest": "abc"})
    young = leave(store, "young", NEW, 2, plan={"digest": "abc"})

    prune(store)

    assert names(store.root / "runs" / "demo") == ["young"]
    assert names(young) == ["plan.json", "run.json"]


@pytest.mark.parametrize(
    ("days", "files", "more", "stays"),
    [
        (1, {}, {}, True),
        (1, {"report": {}}, {}, False),
        (31, {}, {}, False),
        (1, {}, {"dag_id": None}, False),
        (1, {}, {"provenance": "of another version"}, True),
    ],
    ids=["waits", "ended", "abandoned", "of a command", "of another version"],
)
def test_a_plan_that_may_wait_for_approval_stays(
    days: int, files: dict[str, Any], more: dict[str, Any], *, stays: bool, store: RunStore
) -> None:
    """A plan of a DAG stays until its run ends, which writes a report, or for 30 days."""
    started = f"{BEFORE - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
    path = leave(store, "waits", started, 1, plan={"digest": "abc"}, **files)
    about = RunFolder(path).read_json("run.json")
    RunFolder(path).write_json("run.json", about | {"dag_id": "reconcile_demo"} | more)

    prune(store)

    assert RunFolder(path).has("plan.json") is stays


def test_the_last_verified_run_of_each_cluster_id_stays(store: RunStore) -> None:
    """Of two clusters with one folder name, each keeps its last verified run."""
    for number, cluster_id in enumerate(("EU", "US", "US"), 1):
        path = leave(store, f"run-{number}", OLD, number, stage_verify=VERIFIED, plan={})
        about = RunFolder(path).read_json("run.json")
        RunFolder(path).write_json("run.json", about | {"cluster_id": cluster_id})

    assert [run.place.name for run in find_expired(store, BEFORE)] == ["run-2"]


def test_a_run_that_is_resumed_meanwhile_stays(store: RunStore) -> None:
    """A run that is being applied, or was since it was listed, stays whole, and prune names it."""
    paths = [leave(store, f"{name}", OLD, number, plan={}) for number, name in enumerate("abc", 1)]
    expired = find_expired(store, BEFORE)
    leave(store, "b", OLD, 2, plan={}, applied={"outcomes": []})

    with claim_run(RunFolder(paths[0])):
        failures = remove(expired, NOW)

    assert [names(path) for path in paths] == [
        ["claim-0001.json", "plan.json", "run.json"],
        ["applied.json", "claim-0001.json", "plan.json", "run.json"],
        [],
    ]
    assert failures[0][1].startswith("another process has been applying run demo/a since")
    assert failures[1:] == ((expired[1], "it was resumed after it was listed, so it stays"),)


def test_a_run_that_failed_stays_in_the_list(store: RunStore) -> None:
    """How a run failed, or that it never ended, stays; a plan that guards blocked goes."""
    failed = VERIFIED | {"stage": "describe", "status": "failed", "message": "no broker"}
    refused = VERIFIED | {"stage": "plan", "status": "refused", "message": "removals"}
    paths = [
        leave(store, "1-failed", OLD, 1, stage_describe=failed, policy={}),
        leave(store, "2-unfinished", OLD, 2, policy={}),
        leave(store, "3-applied", OLD, 3, plan={"digest": "abc"}, applied={"outcomes": []}),
    ]
    leave(store, "4-refused", OLD, 4, plan={"digest": "abc"}, stage_plan=refused)
    before = [summarize_run(path).as_json() for path in paths]

    prune(store)

    assert names(store.root / "runs" / "demo") == [path.name for path in paths]
    assert [names(path) for path in paths] == [
        ["policy.json", "run.json", "stage-describe.json"],
        ["policy.json", "run.json"],
        ["applied.json", "pruned.json", "run.json"],
    ]
    after = [summarize_run(path).as_json() for path in paths]
    before[-1] |= {"digest": None, "size": after[-1]["size"]}
    assert after == before
    assert [(one["status"], one["stopped"]) for one in after[:2]] == [
        ("unfinished", "describe failed"),
        ("unfinished", None),
    ]
    assert find_expired(store, BEFORE) == ()


def test_how_a_run_ended_stays(store: RunStore) -> None:
    """A pruned run keeps its records; `runs` lists it as before, and `show` gives the time."""
    path = leave(
        store,
        "old",
        OLD,
        1,
        report={},
        end_0001=END,
        stage_apply=APPLIED,
        approval={"decisions": []},
        batch_0001={},
    )
    on_disk(path / "attempt-0001").mkdir()
    before = summarize_run(path).as_json()

    prune(store)

    assert names(path) == [
        "approval.json",
        "end-0001.json",
        "pruned.json",
        "run.json",
        "stage-apply.json",
    ]
    after = summarize_run(path).as_json()
    assert after == before | {"size": after["size"]}
    shown = CliRunner().invoke(cli.main, ["show", "old", "--run-store", str(store.root)])
    assert shown.exit_code == 2
    assert shown.stderr == (
        "run old was pruned at 2026-11-22T00:00:00Z: its plan, tables and report are gone\n"
        f"  How it ended: demo matches Git. Its records are in {path}.\n"
    )
    assert find_expired(store, BEFORE) == ()


def test_what_no_run_recorded_stays(store: RunStore) -> None:
    """A person's files stay in their folders, and prune names one of them."""
    path = leave(store, "old", OLD, 1, plan={"digest": "abc"}, stage_plan={}, batch_0001={})
    for number in range(2, 6):
        leave(store, f"young-{number}", NEW, number)
    for place in (path / "notes", path / "attempt-0001", store.overviews / "drift"):
        on_disk(place).mkdir(parents=True)
    for name in ("notes/report.json", "plan.json.bak", "batch-1.json", "attempt-0001/mail.txt"):
        (on_disk(path) / name).write_text("mine")
    on_disk(path / "report.txt").symlink_to(on_disk(path / "plan.json.bak"))
    on_disk(path / "attempt-0001" / "differences.parquet").write_text("recorded")
    on_disk(path / f"plan.json.{'0' * 32}.part").write_text("recorded")
    RunFolder(store.overviews / "drift").write_json("run.json", {"started": OLD})
    on_disk(store.overviews / "drift" / "report.html").write_text("recorded")
    on_disk(store.overviews / "drift" / "why.md").write_text("mine")
    note = store.overviews / "drift" / "why.md"
    kept = f"because no run recorded them: 6 files, for example {note}\n"
    arguments = ["prune", "--keep", "90d", "--run-store", str(store.root)]

    shown = CliRunner().invoke(cli.main, arguments)
    again = CliRunner().invoke(cli.main, arguments)

    assert (shown.exit_code, again.exit_code) == (0, 0)
    assert shown.stdout.endswith(kept)
    assert again.stdout.startswith("Nothing to remove")
    mine = ["attempt-0001", "batch-1.json", "notes", "plan.json.bak", "report.txt"]
    recorded = ["batch-0001.json", "pruned.json", "run.json", "stage-plan.json"]
    assert names(path) == sorted([*mine, *recorded])
    assert names(path / "attempt-0001") == ["mail.txt"]
    assert names(path / "notes") == ["report.json"]
    assert names(store.overviews / "drift") == ["run.json", "why.md"]


def test_a_run_of_spark_with_an_inventory_goes_entirely(store: RunStore) -> None:
    """Its manifest, its clients, what a killed attempt left, and the empty folders go too."""
    path = leave(store, "old", OLD, 1, plan={"digest": "abc"}, diff_0001={})
    for name in ("inventory.parquet", "client_effects.json"):
        (path / name).replace(b"recorded")
    attempt = "0123456789abcdef" * 2
    for name in (f"client_effects/{attempt}/part-0.parquet", f"spark-{attempt}/differences/_x.crc"):
        path.below(name).replace(b"recorded")
    on_disk(path / f"spark-{attempt}" / "batches" / "_temporary").mkdir(parents=True)

    prune(store)

    assert names(store.root / "runs" / "demo") == []


def test_the_docs_list_every_file_of_a_run() -> None:
    """The table in the docs is the one that restarts and prune read."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "run-store.md"
    rows = [f"| `{file}` | {file.content} | {file.stage} | {file.prune.value} |" for file in FILES]

    table = page.read_text("utf-8").partition("| file | what is in it | moved")[2]
    assert table.splitlines()[2 : 2 + len(rows)] == rows


def test_the_last_verified_run_stays_whole(store: RunStore) -> None:
    """The verified run with the largest sequence number is kept whole, however old it is."""
    leave(store, "earlier", NEW.replace("11", "02"), 1, stage_verify=VERIFIED, report={})
    last = leave(store, "last", OLD, 2, stage_verify=VERIFIED, report={})

    prune(store)

    assert names(store.root / "runs" / "demo") == ["last"]
    assert names(last) == ["report.json", "run.json", "stage-verify.json"]


def test_a_run_with_unsettled_writes_stays(store: RunStore) -> None:
    """A run with an intent in the ledger is kept: its rows are needed to settle the write."""
    leave(store, "unsettled", OLD, 1, plan={"digest": "abc"})
    leave(store, "settled", OLD, 2, plan={"digest": "abc"})
    add(store.of_cluster("id"), row("user=a", 1.0, INTENDED, run="unsettled"))

    prune(store)

    assert names(store.root / "runs" / "demo") == ["unsettled"]


@pytest.mark.parametrize("about", [None, "{", '{"started": 1}', '{"started": "yesterday"}'])
def test_a_run_that_does_not_tell_its_age_stays(about: str | None, store: RunStore) -> None:
    """A run whose start cannot be read is never removed."""
    path = store.root / "runs" / "demo" / "odd"
    on_disk(path).mkdir(parents=True)
    if about is not None:
        on_disk(path / "run.json").write_text(about)

    prune(store)

    assert on_disk(path).is_dir()


def test_the_newest_files_of_a_ledger_stay(store: RunStore) -> None:
    """The newest hundred stay, and the ledger itself is unchanged."""
    for number in range(LEDGER_FILES + 3):
        add(store.of_cluster("id"), row("user=a", float(number)))
    before = ledger.read(store.of_cluster("id")).file

    prune(store)

    assert names(store.of_cluster("id").ledger)[0] == "00000004.parquet"
    assert len(names(store.of_cluster("id").ledger)) == LEDGER_FILES
    assert ledger.read(store.of_cluster("id")).file == before


def test_the_newest_claims_stay(store: RunStore) -> None:
    """The newest hundred claims are kept, because the newest stops earlier runs from writing."""
    add(store.of_cluster("id"), row("user=a", 1.0))
    claim = claims.Claim("run", None, claims.digest_of([]))
    for number in range(1, LEDGER_FILES + 3):
        claims.create(store.of_cluster("id"), number, claim)

    prune(store)

    folder = store.of_cluster("id").claims
    assert (names(folder)[0], len(names(folder))) == ("00000003.json", LEDGER_FILES)
    assert claims.read(store.of_cluster("id"), 102) == claim


def test_what_people_said_stays(store: RunStore) -> None:
    """Approvals and holds are not artifacts of runs: prune does not touch them."""
    for folder in (store.of_cluster("id").approvals, store.of_cluster("id").holds):
        (folder / "00000001.json").replace(b"{}")

    prune(store)

    assert (
        names(store.of_cluster("id").approvals)
        == names(store.of_cluster("id").holds)
        == ["00000001.json"]
    )


def test_holds_that_have_ended_are_removed(store: RunStore) -> None:
    """Old holds and their releases go; what is held, the newest file and its number stay."""
    folder, end = store.of_cluster("id").holds, datetime.fromisoformat(OLD)
    far, soon = end + timedelta(days=9_999), end + timedelta(hours=1)

    def hold(name: str, until: datetime) -> None:
        holds.add(folder, Hold(user(name), until, "anna", "INC-31", end))

    for name, until in (
        *(("ended", soon), ("released", far), ("held", soon), ("held", far)),
        *(("released", end), ("again", end), ("again", far), ("newest", soon)),
    ):
        hold(name, until)
    before = holds.holds_now(folder)

    prune(store)

    assert names(folder) == [f"0000000{number}.json" for number in (3, 4, 6, 7, 8)]
    assert holds.holds_now(folder) == before
    assert len(before) == 2
    hold("next", far)
    assert names(folder)[-1] == "00000009.json"


def test_a_damaged_ledger_stops_it(store: RunStore) -> None:
    """With a damaged ledger nothing is removed, because it is unknown which runs are needed."""
    leave(store, "old", OLD, 1, plan={"digest": "abc"})
    (store.of_cluster("id").ledger / "00000001.parquet").replace(b"")

    with pytest.raises(InvalidInput, match="the ledger does not parse"):
        find_expired(store, BEFORE)
    assert names(store.root / "runs" / "demo") == ["old"]
