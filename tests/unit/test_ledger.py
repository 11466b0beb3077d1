"""The ledger: whole states in numbered files, and what may change in them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quota_ops import ledger, parquet
from quota_ops.ledger import INTENDED, VERIFIED, Ledger
from quota_ops.model.errors import InvalidInput
from quota_ops.model.policy import Policy
from quota_ops.model.rows import DesiredRow, LedgerRow
from quota_ops.model.tables import ACTUAL

KEY = "producer_byte_rate"
POLICY = Policy("demo", "id", "demo")


def row(entity: str, value: float | None, state: str = VERIFIED, **fields: Any) -> LedgerRow:
    """A row of the ledger."""
    when: dict[str, Any] = {"run": "run-1", "at": "2026-11-01T00:00:00Z"}
    made = LedgerRow("id", entity, KEY, value, state, "team", "team.yaml", "c0ffee", **when)
    return made._replace(**fields)


def rows(*given: LedgerRow) -> dict[ledger.LedgerKey, LedgerRow]:
    """Rows as an edit sees them."""
    return {(one.entity, one.key, one.state): one for one in given}


def add(folder: Path, *given: LedgerRow) -> str | None:
    """Add rows to a ledger."""
    return ledger.change(folder, lambda known: known.update(rows(*given)))


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_there_has_never_been_one(ledger_folder: Path) -> None:
    """No folder and an empty folder are a ledger that knows nothing."""
    assert ledger.read(ledger_folder / "missing") == ledger.read(ledger_folder) == Ledger(None, ())


def test_every_change_is_a_file(ledger_folder: Path) -> None:
    """A change makes the next file, whole, and leaves those before it as they were."""
    first = add(ledger_folder, row("user=b", 1.0))
    content = (ledger_folder / "00000001.parquet").read_bytes()
    second = add(ledger_folder, row("user=a", None, INTENDED))

    assert (first, second) == ("00000001.parquet", "00000002.parquet")
    assert names(ledger_folder) == [first, second]
    assert (ledger_folder / "00000001.parquet").read_bytes() == content
    assert ledger.read(ledger_folder) == Ledger(
        "00000002.parquet", (row("user=a", None, INTENDED), row("user=b", 1.0))
    )


def test_a_change_that_changes_nothing_makes_no_file(ledger_folder: Path) -> None:
    """The same rows, policy and commit again are the ledger that is there; the first is made."""
    made = ledger.change(ledger_folder, lambda _: None, policy=POLICY, commit="c1")

    assert made == "00000001.parquet"
    assert ledger.change(ledger_folder, lambda _: None, policy=POLICY, commit="c1") is None
    assert ledger.change(ledger_folder, lambda _: None) is None
    assert names(ledger_folder) == [made]


def test_policy_and_commits_stand_beside_the_rows(ledger_folder: Path) -> None:
    """The last applied policy, and each applied commit once, in order of its last time."""
    for commit in ("c1", "c2", None, "c2", "c3", "c1"):
        ledger.change(ledger_folder, lambda _: None, policy=POLICY, commit=commit)
    add(ledger_folder, row("user=a", 1.0))

    found = ledger.read(ledger_folder)
    assert (found.policy, found.commits) == (POLICY.as_json(), ("c2", "c3", "c1"))


def test_old_commits_are_forgotten(ledger_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many commits are kept, the last ones."""
    monkeypatch.setattr(ledger, "COMMITS_KEPT", 2)
    for commit in ("c1", "c2", "c3"):
        ledger.change(ledger_folder, lambda _: None, commit=commit)

    assert ledger.read(ledger_folder).commits == ("c2", "c3")


WRITER = """
import sys
from pathlib import Path
from tests.unit.test_ledger import add, row
writer = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    add(Path(sys.argv[1]), row(f"user={writer}-{number}", float(number)))
"""


def test_writers_lose_nothing_to_each_other(ledger_folder: Path) -> None:
    """Four processes write at once; every row of each is there, and every file is one change."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(ledger_folder), str(writer)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in range(4)
    ]
    for one in writers:
        assert one.stdout is not None
        one.stdout.readline()
    for one in writers:
        one.communicate("go\n")

    assert [one.returncode for one in writers] == [0] * 4
    assert {one.entity: one.value for one in ledger.read(ledger_folder).rows} == {
        f"user={writer}-{number}": float(number) for writer in range(4) for number in range(10)
    }
    assert names(ledger_folder) == [f"{number:08d}.parquet" for number in range(1, 41)]


@pytest.mark.parametrize("content", [b"", b"PAR1 no", b"not at all"])
def test_a_damaged_ledger_is_no_empty_one(content: bytes, ledger_folder: Path) -> None:
    """It is an error that names the file and the way on; nothing is written."""
    add(ledger_folder, row("user=a", 1.0))
    damaged = ledger_folder / "00000002.parquet"
    damaged.write_bytes(content)

    for act in (ledger.read, add):
        with pytest.raises(InvalidInput) as refused:
            act(ledger_folder)
        assert refused.value.message.startswith(f"the ledger does not parse: {damaged} is not a ")
        assert refused.value.remedy == (
            "Nothing was changed. Move the damaged file aside to go on from the file before it."
        )
    assert damaged.read_bytes() == content
    assert names(ledger_folder) == ["00000001.parquet", "00000002.parquet"]


def test_a_table_of_another_kind_is_no_ledger(ledger_folder: Path) -> None:
    """Parquet alone is not enough: the columns must be the ledger's."""
    add(ledger_folder, row("user=a", 1.0))
    (ledger_folder / "00000002.parquet").write_bytes(
        parquet.to_bytes(ACTUAL, parquet.from_rows(ACTUAL, []))
    )

    with pytest.raises(InvalidInput, match=r"the ledger does not parse: .* state is missing"):
        ledger.read(ledger_folder)


@pytest.mark.parametrize("aside", ["00000002.parquet.bad", "00000002.bad.parquet", "copy.parquet"])
def test_a_file_that_was_moved_aside_does_not_count(aside: str, ledger_folder: Path) -> None:
    """The ledger goes on from the file before it, with its number."""
    add(ledger_folder, row("user=a", 1.0))
    (ledger_folder / aside).write_bytes(b"damaged")
    (ledger_folder / "00000002.parquet.0123.part").write_bytes(b"half")

    assert ledger.read(ledger_folder).file == "00000001.parquet"
    assert add(ledger_folder, row("user=b", 1.0)) == "00000002.parquet"


def test_an_intent_stands_beside_what_was_verified() -> None:
    """Until it is read back, both are known."""
    known = rows(row("user=a", 1.0))

    ledger.intend(known, [row("user=a", 2.0, INTENDED)], {("user=a", KEY): 1.0})

    assert known == rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED))


@pytest.mark.parametrize(
    ("stored", "verified"),
    [
        ({("user=a", KEY): 2.0}, [row("user=a", 2.0, run="run-2")]),
        ({("user=a", KEY): 1.0}, [row("user=a", 1.0)]),
        ({}, [row("user=a", 1.0)]),
    ],
)
def test_an_intent_that_arrived_is_kept(
    stored: dict[tuple[str, str], float], verified: list[LedgerRow]
) -> None:
    """Before another takes its place, an intent that the cluster holds counts as read back."""
    known = rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED, run="run-2"))

    ledger.intend(known, [row("user=a", 3.0, INTENDED)], stored)

    assert known == rows(*verified, row("user=a", 3.0, INTENDED))


def test_a_clear_that_arrived_is_kept() -> None:
    """A cleared key is no longer ours before it is set again."""
    known = rows(row("user=a", 1.0), row("user=a", None, INTENDED))

    ledger.intend(known, [row("user=a", 3.0, INTENDED)], {})

    assert known == rows(row("user=a", 3.0, INTENDED))


def test_an_attempt_again_verifies_nothing() -> None:
    """The same intent once more is the same intent, although the cluster holds it already."""
    known = rows(row("user=a", 2.0, INTENDED))

    ledger.intend(known, [row("user=a", 2.0, INTENDED)], {("user=a", KEY): 2.0})

    assert known == rows(row("user=a", 2.0, INTENDED))


def test_an_intent_is_taken_back() -> None:
    """What surely was not written is not ours; what was verified stays."""
    known = rows(row("user=a", 1.0), row("user=a", 2.0, INTENDED), row("user=b", 2.0, INTENDED))

    ledger.withdraw(known, [("user=a", KEY), ("user=c", KEY)])

    assert known == rows(row("user=a", 1.0), row("user=b", 2.0, INTENDED))


def test_what_was_read_back_ends_the_intent() -> None:
    """A value replaces both rows of its key; an absence removes them."""
    known = rows(
        row("user=a", 1.0),
        row("user=a", 2.0, INTENDED),
        row("user=b", 1.0),
        row("user=b", None, INTENDED),
        row("user=c", 1.0),
    )

    ledger.confirm(known, [row("user=a", 2.0), row("user=b", None), row("user=d", 4.0)])

    assert known == rows(row("user=a", 2.0), row("user=c", 1.0), row("user=d", 4.0))


def test_owner_and_file_follow_git() -> None:
    """A row that moves to another team's file is the same row; one that left Git stays theirs."""
    known = rows(row("user=a", 1.0), row("user=b", 1.0), row("user=b", 2.0, INTENDED))
    moved = DesiredRow("id", "user=b", KEY, 1.0, "search", None, "search.yaml", 3)

    ledger.follow(known, {("user=b", KEY): moved})

    after = {"owner": "search", "file": "search.yaml"}
    assert known == rows(
        row("user=a", 1.0),
        row("user=b", 1.0, **after),
        row("user=b", 2.0, INTENDED, **after),
    )
