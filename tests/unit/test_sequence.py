"""The numbers of runs: none is given twice, and a later run has a larger one."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.quotas.tables import LEDGER
from quota_ops.stages.succession import begin, take_number_above
from quota_ops.store.ledger import claims
from quota_ops.store.places import parquet, run_store
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run import folder as run_folder
from quota_ops.store.run import order as run_numbers
from quota_ops.store.run.files import POLICY
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import last_number, runs_latest_first, take_number
from tests.places import on_disk


def began(store: RunStore, commit: str | None = None) -> RunFolder:
    """Return a run that has just started."""
    return RunFolder.start(store.new_run("demo"), cluster="demo", commit=commit)


def number_of(folder: RunFolder) -> int | None:
    """Return the number of a run."""
    number: int | None = folder.about().sequence
    return number


def test_numbers_count_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers start at 1; a folder contains few of them, and a new folder may be empty."""
    monkeypatch.setattr(run_numbers, "_EACH", 3)

    assert last_number(open_place(tmp_path / "sequence")) == 0
    assert [take_number(open_place(tmp_path / "sequence"), b"{}") for _ in range(7)] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    places = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.json"))
    assert list(map(str, places)) == [
        "sequence/00000000.runs/00000001.json",
        "sequence/00000000.runs/00000002.json",
        "sequence/00000001.runs/00000003.json",
        "sequence/00000001.runs/00000004.json",
        "sequence/00000001.runs/00000005.json",
        "sequence/00000002.runs/00000006.json",
        "sequence/00000002.runs/00000007.json",
    ]
    (tmp_path / "sequence" / "00000003.runs").mkdir()
    assert last_number(open_place(tmp_path / "sequence")) == 8
    assert take_number(open_place(tmp_path / "sequence"), b"{}") == 9


def test_no_two_runs_have_one_number(tmp_path: Path) -> None:
    """Runs that start at the same time get different numbers, without a gap."""
    with ThreadPoolExecutor(8) as pool:
        numbers = list(
            pool.map(lambda _: number_of(began(RunStore(open_place(tmp_path)))), range(40))
        )

    assert sorted(filter(None, numbers)) == list(range(1, 41))


def test_two_runs_that_draw_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second takes another name: it is no attempt of the first."""
    names = iter(["same", "same", "same", "other"])
    for module in (run_store, run_folder):
        monkeypatch.setattr(module, "name_run", lambda: next(names))
    store = RunStore(open_place(tmp_path))

    runs = [began(store, commit).about() for commit in ("c1", "c2")]

    assert [(run.run, run.commit) for run in runs] == [("same", "c1"), ("other", "c2")]
    assert [place.name for place in store.runs("demo")] == ["other", "same"]


def test_a_run_that_begins_again_takes_a_new_number(tmp_path: Path) -> None:
    """A cleared run gets a new, higher number; a resumed task keeps the number of the run."""
    store = RunStore(open_place(tmp_path))
    first, second = began(store, "c1"), began(store, "c1")
    first.write(POLICY, Policy("demo", "id", "demo"))
    begin(first)
    again = partial(RunFolder.start, cluster="demo", dag_id="reconcile_demo")
    assert again(first.place, commit="c1").about() == first.about()
    assert (number_of(first), number_of(second)) == (1, 2)

    begin(first)
    assert number_of(first) == 3

    again(second.place, commit="c2", redo=True)
    assert number_of(second) == 4


def test_a_ledger_from_another_run_store(tmp_path: Path) -> None:
    """A run gets a number above all those in its ledger and claims, even in an older store."""
    row = LedgerRow("id", "user=a", "k", 1.0, "verified", None, None, None, "earlier", "")
    known = parquet.from_rows(LEDGER, [row._replace(sequence=500), row])
    store = RunStore(open_place(tmp_path))
    folder = began(store)

    take_number_above(folder, known, 0)

    assert (number_of(folder), number_of(began(store))) == (501, 502)
    take_number_above(folder, known, 502)
    assert number_of(folder) == 501
    take_number_above(folder, known, 510)
    assert number_of(folder) == 511


def test_a_copied_store_goes_on_counting(tmp_path: Path) -> None:
    """The numbers are names: no file time and no clock decides."""
    began(RunStore(open_place(tmp_path / "one")))
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)

    assert number_of(began(RunStore(open_place(tmp_path / "two")))) == 2


def test_the_newest_runs_are_found_by_their_numbers(tmp_path: Path) -> None:
    """The newest first, each once, whatever its file times; damage hides only the damaged run."""
    store = RunStore(open_place(tmp_path / "store"))
    runs = [began(store) for _ in range(4)]
    runs[1].take_next_number()
    on_disk(store.sequence / "00000000.runs" / "00000003.json").write_text("{")

    names = [f"demo/{on_disk(runs[one]).name}" for one in (1, 3, 0)]
    assert list(runs_latest_first(store.sequence)) == names
    assert list(runs_latest_first(open_place(tmp_path / "missing"))) == []


def test_what_is_no_folder_of_numbers(tmp_path: Path) -> None:
    """A file or a link in its place is named, with the advice to move it.

    A larger number is ignored.
    """
    store = RunStore(open_place(tmp_path / "store"))
    began(store)
    on_disk(store.sequence / "99999999.runs").mkdir()
    assert number_of(began(store)) == 2

    in_the_way = store.sequence / "00000099.runs"
    on_disk(in_the_way).touch()
    with pytest.raises(InvalidInput) as of_file:
        began(store)
    on_disk(in_the_way).unlink()
    on_disk(in_the_way).symlink_to("nowhere")
    with pytest.raises(InvalidInput) as of_link:
        began(store)
    on_disk(in_the_way).unlink()

    remedy = f"{in_the_way} is in the way: move it elsewhere, or correct the path."
    assert str(of_file.value) == f"{in_the_way} cannot be listed: Not a directory\n  {remedy}"
    assert of_link.value.remedy == remedy
    assert number_of(began(store)) == 3


def test_a_file_in_the_place_of_a_clusters_runs(tmp_path: Path) -> None:
    """A file in the place of a cluster's runs is named, with the advice to move it."""
    store = RunStore(open_place(tmp_path / "store"))
    on_disk(store.root / "runs").mkdir(parents=True)
    on_disk(store.root / "runs" / "demo").touch()

    with pytest.raises(InvalidInput) as error:
        store.new_run("demo", "one").prepare()

    assert str(error.value) == (
        f"{store.root}/runs/demo/one cannot be written: File exists\n"
        f"  {store.root}/runs/demo is in the way: move it elsewhere, or correct the path."
    )


def test_a_number_that_another_run_has_claimed(tmp_path: Path) -> None:
    """Two runs with one number have no order, so the second writes nothing; a resumed run may."""
    records = RunStore(open_place(tmp_path)).of_cluster("id")
    for _ in range(2):
        claims.create(records, 7, claims.Claim("one", "c1", "values"))

    with pytest.raises(Refused, match=r"run one has the same number as this run, 7: .*00000007"):
        claims.create(records, 7, claims.Claim("two", "c2", "values"))
