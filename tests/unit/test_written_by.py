"""Stored files of a newer version are called newer, with the version to install."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.store.history import history
from quota_ops.store.ledger import claims, decisions, ledger
from quota_ops.store.places import parquet, written_by
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.places.written_by import own_version
from tests.unit.test_ledger import add, row

CLAIM = claims.Claim("run", None, "digest")
APPROVED = Decision(DecisionKind.APPROVED, "d", (), "anna", None, "2026-11-22T00:00:00Z", "", "run")
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)
AT = "2026-11-22T00:00:00Z"
LOOK = {"cluster": "demo", "run": "r", "started": AT, "ended": AT, "revision": 1, "mode": "look"}
END = HistoryRow(**NOTHING | LOOK | {"status": "In sync"})


def read_history(store: RunStore) -> None:
    """Raise the first trouble of the history as an error."""
    for day in history.list_days(store):
        for trouble in history.read_day(day).troubles:
            raise InvalidInput(trouble)


def add_field(content: bytes) -> bytes:
    """Return a stored file with a field that this version does not know."""
    if content.startswith(b"{"):
        return json.dumps({**json.loads(content), "only_for": "x"}).encode()
    return content.replace(b"entity", b"entitx")


Action = Callable[[RunStore], object]
FILES: dict[str, tuple[Action, Action, str]] = {
    "claim": (
        lambda store: claims.create(store.of_cluster("id"), 1, CLAIM),
        lambda store: claims.read(store.of_cluster("id"), 1),
        "claims/id/00000001.json",
    ),
    "approval": (
        lambda store: decisions.append(store.of_cluster("id").approvals, APPROVED),
        lambda store: decisions.read(store.of_cluster("id").approvals, "d"),
        "approvals/id/d-0001.json",
    ),
    "ledger": (
        lambda store: add(store.of_cluster("id"), row("user=a", 1.0)),
        lambda store: ledger.read(store.of_cluster("id")),
        "ledger/id/00000001.parquet",
    ),
    "history": (
        lambda store: history.append(store, parquet.from_rows(HISTORY, [END])),
        read_history,
        "history/date=2026-11-22/demo@r@2026-11-22T00-00-00Z-1.parquet",
    ),
}


@pytest.mark.parametrize("version", ["99.1", None], ids=["newer", "own"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_a_newer_version(
    kind: str, version: str | None, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer file that cannot be read is no damaged one; with this version's number, it is."""
    write, read, path = FILES[kind]
    own = own_version()
    with monkeypatch.context() as patch:
        patch.setattr(written_by, "own_version", lambda: version or own)
        write(store)
    place: Place = store.root.below(path)
    read(store)
    place.replace(add_field(place.read()))

    with pytest.raises(InvalidInput) as error:
        read(store)

    newer = f"{place} was written by quota-ops 99.1, which is newer than this {own}: "
    assert error.value.message.startswith(newer) is bool(version)


def test_each_table_records_the_version() -> None:
    """Every Parquet file has the version that wrote it, which no reader of notes sees."""
    content = parquet.to_bytes(HISTORY, parquet.from_rows(HISTORY, [END]), {"note": "x"})

    assert own_version().encode() in content
    assert parquet.notes(parquet.from_bytes(HISTORY, content, "x")) == {"note": "x"}


@pytest.fixture(name="store")
def _store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return RunStore(open_place(tmp_path_factory.mktemp("store")))
