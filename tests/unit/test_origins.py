"""Which of a cluster's earlier runs explains an unmanaged value."""

from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import ActualRow, LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, DIFFERENCES
from quota_ops.model.runs.run import UNKNOWN
from quota_ops.model.stored import to_json
from quota_ops.stages.plan.origins import find_origins, leave_origins
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import POLICY
from quota_ops.store.run.folder import RunFolder
from tests.records import complete

KEY = "producer_byte_rate"
BOB = Difference(
    *("id", "user=bob", KEY, Kind.UNMANAGED, Action.REPORT, 7.0, *[None] * 11)  # type: ignore[arg-type]
)
WHO = {"by": "anna", "reason": "search"}


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> RunStore:
    return RunStore(open_place(tmp_path / "store"))


def add_run(store: RunStore, name: str, cluster_id: str = "id", **files: Any) -> RunFolder:
    """Add a run of demo with some artifacts."""
    place = store.root / "runs" / "demo" / name
    run = RunFolder.start(place, cluster="demo", commit=None)
    run.write(POLICY, Policy("demo", cluster_id, "demo"))
    for file, content in files.items():
        run.write_json(f"{file}.json", complete(f"{file}.json", content))
    return run


def observe(store: RunStore, name: str, value: float | None, **options: Any) -> RunFolder:
    """Add a run that described the cluster when bob had a value; None for no value."""
    run = add_run(store, name, described={"snapshot": options.pop("snapshot", None)}, **options)
    rows = [] if value is None else [ActualRow("id", "user=bob", KEY, value, True, None)]
    run.write_table(ACTUAL, rows)
    return run


def record(value: float, cluster_id: str = "id") -> dict[str, Any]:
    """Return what a release or an adoption of bob records."""
    row = LedgerRow(cluster_id, "user=bob", KEY, value, "verified", None, None, None, "", "")
    return {**WHO, "rows": [to_json(LedgerRow, row)]}


def add_alter(
    store: RunStore, name: str, before: float | None, after: float | None, **options: Any
) -> RunFolder:
    """Add an alter that the cluster accepted."""
    outcome = {"batch": 1, "entity": "user=bob", "keys": [KEY], "status": "accepted"}
    run = add_run(store, name, alter=WHO, applied={"outcomes": [outcome]}, **options)
    action = Action.CLEAR if after is None else Action.SET
    row = BOB._replace(action=action, before=before, after=after, batch=1)
    run.write_table(DIFFERENCES, [row])
    return run


def words(store: RunStore) -> str:
    """Return the words for the value 7 of bob."""
    run = add_run(store, "now")
    return find_origins(run, [BOB])[BOB.id].words


def test_a_release(store: RunStore) -> None:
    """A release explains its value and a changed one, until a run finds no value."""
    add_run(store, "r", released=record(7.0))
    assert words(store) == "released from the ledger by anna in run r: search"
    observe(store, "8", 8.0)
    assert words(store) == "released from the ledger by anna in run r: search, and changed since"
    observe(store, "absent", None)
    assert words(store) == "not there in run absent"


def test_an_adoption(store: RunStore) -> None:
    """A later adoption explains the value instead of an earlier release."""
    add_run(store, "r", released=record(7.0))
    add_run(store, "a", adopted=record(7.0))
    assert words(store) == "adopted into the ledger by anna in run a: search"


def test_an_alter(store: RunStore) -> None:
    """An alter explains the value that it set, replaced or cleared."""
    add_run(store, "r", released=record(7.0))
    add_alter(store, "1", None, 7.0)
    assert words(store) == "set by anna with alter in run 1"
    add_alter(store, "2", 7.0, 7.0)
    assert words(store) == "set by anna with alter in run 1"
    add_alter(store, "3", 7.0, 8e6)
    assert words(store) == "set to 8 MB/s by anna with alter in run 3, and changed since"
    add_alter(store, "4", 8e6, None)
    assert words(store) == "cleared by anna with alter in run 4, and set since"


def test_what_runs_saw(store: RunStore) -> None:
    """Runs of the same cluster explain since when a value is there, or when it was last absent."""
    observe(store, "other", None, cluster_id="other")
    add_run(store, "s", released=record(7.0, "other"))
    assert words(store) == UNKNOWN.words
    observe(store, "1", 7.0)
    observe(store, "file", None, snapshot="s.jsonl")
    observe(store, "2", 7.0)
    assert words(store) == "there in run 1 already; who set it is unknown"
    observe(store, "3", None)
    leave_origins(observe(store, "4", 7.0), [BOB])
    observe(store, "5", 7.0)
    assert words(store) == "not there in run 3"
    offline = observe(store, "offline", 7.0, snapshot="s.jsonl")
    assert find_origins(offline, [BOB]) == {BOB.id: UNKNOWN}
    assert find_origins(add_run(store, "now"), [BOB._replace(before=8e6)])[BOB.id].words == (
        "7 B/s in run 5"
    )


def test_a_release_whose_run_was_pruned(store: RunStore) -> None:
    """A release explains its value even if its run was pruned."""
    run = add_run(store, "r", released=record(7.0))
    (run.place / POLICY).delete()
    assert words(store) == "released from the ledger by anna in run r: search"
