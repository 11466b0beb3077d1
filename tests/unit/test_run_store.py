"""Where runs and ledgers are stored."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput, MissingTool
from quota_ops.store.places.object_client import open_client
from quota_ops.store.places.run_store import (
    ENVIRONMENT,
    RunStore,
    find_run_store,
    open_place,
    store_of,
)
from tests.places import on_disk


def mode(path: Path) -> int:
    """Return the permissions of a path."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("first", ["run", "hold", "ledger"])
def test_a_store_is_private(first: str, tmp_path: Path) -> None:
    """Whatever the umask and the first writer, no other user can read its folders and files."""
    root = tmp_path / "store"
    store = RunStore(open_place(root))
    place = store.of_cluster("id").holds / "1.json"
    writes: dict[str, Callable[[], object]] = {
        "run": lambda: (store.new_run("demo") / "run.json").replace(b"1"),
        "hold": lambda: place.create(b"1"),
        "ledger": lambda: (store.of_cluster("id").ledger / "1.parquet").replace(b"1"),
    }
    before = os.umask(0)
    try:
        writes[first]()
        store.new_run("other")
        place.replace(b"2")
    finally:
        os.umask(before)

    modes = {(path.is_dir(), oct(mode(path))) for path in (root, *root.rglob("*"))}
    assert modes == {(True, "0o700"), (False, "0o600")}


def test_an_address_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its library, the address of an object store is an error that names the extra."""
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    open_client.cache_clear()

    with pytest.raises(MissingTool) as refused:
        find_run_store("s3://bucket/quotas")

    assert str(refused.value) == (
        "s3://bucket is an object store, which needs the library obstore\n"
        "  Install quota-ops with the extra [objects]."
    )


@pytest.mark.parametrize("inside", ["runs/demo/first", "runs/demo", "runs", "ledger/id/deep"])
def test_a_store_inside_a_store(inside: str, tmp_path: Path) -> None:
    """The copied address of a run is no run store of its own: the error names the one around it."""
    outer = RunStore(open_place(tmp_path / "runs" / "store"))
    (outer.sequence / "00000000.runs").create(b"1")

    with pytest.raises(InvalidInput) as refused:
        find_run_store(str(tmp_path / "runs" / "store" / inside))

    assert refused.value.message.endswith(f"{inside} is inside the run store {outer.root}")
    assert find_run_store(str(outer.root)) == outer
    assert store_of(outer.root / "runs" / "demo" / "first") == outer


def test_runs_are_named_by_their_time(tmp_path: Path) -> None:
    """Two runs of one second are two folders, below their cluster, ordered by time."""
    store = RunStore(open_place(tmp_path))
    names = [
        on_disk(store.new_run("demo")).relative_to(tmp_path / "runs" / "demo").name
        for _ in range(3)
    ]

    assert len(set(names)) == 3
    assert all(len(name) == len("2026-11-21T10-15-00Z-ab12") for name in names)


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("manual__2026-11-21T10:15:00+00:00", "manual__2026-11-21T10~3A15~3A00+00~3A00"),
        ("../../etc", "..~2F..~2Fetc"),
        ("a\0b", "a~00b"),
        ("a_b", "a_b"),
        ("a~00b", "a~7E00b"),
        ("naïve  b", "na~C3~AFve~20~20b"),
        ("..", "~2E~2E"),
        (".", "~2E"),
        ("\udc80", "~ED~B2~80"),
        ("x" * 100, "x" * 100),
        ("x" * 250, "x" * 100 + "~~086d4a1c293bde318dc1fec9a21b9d82"),
    ],
)
def test_a_name_never_leaves_the_store(run: str, name: str, tmp_path: Path) -> None:
    """Any text can name a run, a cluster or a ledger: it becomes one folder, always the same."""
    store = RunStore(open_place(tmp_path))

    made = [on_disk(store.new_run(run, run)) for _ in range(2)]
    assert made == [tmp_path / "runs" / name / name] * 2
    assert on_disk(store.of_cluster(run).ledger) == tmp_path / "ledger" / name


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names the store, and the file in its place."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(InvalidInput) as refused:
        RunStore(open_place(tmp_path / "file")).new_run("demo")

    assert str(refused.value) == (
        f"the run store {tmp_path / 'file'} cannot be written: File exists\n"
        f"  {tmp_path / 'file'} is in the way: move it elsewhere, or correct the path."
    )


def test_the_option_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option wins over the environment, and that over the user's own state folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    own = find_run_store()
    monkeypatch.setenv(ENVIRONMENT, "~/environment")

    assert own == RunStore(
        open_place(tmp_path / "home" / ".local" / "state" / "quota-ops" / "store")
    )
    assert find_run_store() == RunStore(open_place(tmp_path / "home" / "environment"))
    assert find_run_store(str(tmp_path / "option")) == RunStore(open_place(tmp_path / "option"))


@pytest.mark.parametrize("git", ["folder", "file"])
def test_a_checkout_is_no_store(git: str, tmp_path: Path) -> None:
    """A store inside a checkout or a worktree is rejected, also through a link to one."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    if git == "folder":
        (checkout / ".git").mkdir()
    else:
        (checkout / ".git").write_text("gitdir: elsewhere")
    (tmp_path / "link").symlink_to(checkout)

    for place in (checkout, checkout / "a" / "b", tmp_path / "link" / "a"):
        with pytest.raises(InvalidInput) as refused:
            find_run_store(str(place))
        assert str(refused.value) == (
            f"the run store {place} is inside the Git checkout {checkout}\n"
            "  Runs and ledgers must outlive a checkout: choose a folder elsewhere, "
            "with --run-store or QUOTA_OPS_RUN_STORE."
        )


def test_the_store_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run belongs to the store that contains it, however the two paths are written."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "environment"))
    store = RunStore(open_place(tmp_path / "store"))
    run = store.new_run("demo")
    on_disk(run).mkdir(parents=True)
    (tmp_path / "link").symlink_to(on_disk(store.root))
    monkeypatch.chdir(on_disk(run))

    for path in (on_disk(run), Path(), on_disk(run) / ".." / run.name):
        named = open_place(path)
        assert store_of(named) == store_of(named, str(tmp_path / "link")) == store
    with pytest.raises(InvalidInput) as refused:
        store_of(run, str(tmp_path / "other"))
    assert str(refused.value) == (
        f"{run} is in the run store {store.root}, but --run-store or {ENVIRONMENT} names "
        f"{tmp_path / 'other'}\n"
        "  Holds, approvals and the ledger of another run store would not count. Pass a run of "
        f"this one, or --run-store {store.root} if that is the one that all runs use."
    )


@pytest.mark.parametrize("place", ["/", "/run", "/runs/demo", "/srv/copies/demo/run"])
def test_a_copy_of_a_run_lies_in_no_store(place: str) -> None:
    """Only ROOT/runs/CLUSTER/RUN has a ledger, approvals and holds."""
    with pytest.raises(InvalidInput, match=f"^{place} is not in a run store"):
        store_of(open_place(place))
