"""The ledger: complete states in numbered files, and what may change in them."""

import subprocess
import sys
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.ledger_edits import CLEARED, INTENDED, VERIFIED, LedgerKey, ledger_key
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, LEDGER
from quota_ops.model.stored import to_json
from quota_ops.store.ledger import ledger
from quota_ops.store.ledger.ledger import Notes
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ClusterStore, RunStore, open_place
from tests.places import on_disk

KEY = "producer_byte_rate"
POLICY = Policy("demo", "id", "demo")


def row(entity: str, value: float | None, state: str = VERIFIED, **fields: Any) -> LedgerRow:
    """Return a row of the ledger."""
    when: dict[str, Any] = {"run": "run-1", "at": "2026-11-01T00:00:00Z"}
    made = LedgerRow("id", entity, KEY, value, state, "team", "team.yaml", "c0ffee", **when)
    return made._replace(**fields)


def rows(*given: LedgerRow) -> dict[LedgerKey, LedgerRow]:
    """Return rows as an edit receives them."""
    return {ledger_key(one): one for one in given}


def add(records: ClusterStore, *given: LedgerRow) -> str | None:
    """Add rows to a ledger."""
    return ledger.change(records, lambda known: known.update(rows(*given)))


def names(folder: Place) -> list[str]:
    """Return the names in a folder."""
    return list(folder.list())


def test_there_has_never_been_one(records: ClusterStore) -> None:
    """No folder and an empty folder are an empty ledger."""
    for empty in (RunStore(open_place("missing")).of_cluster("id"), records):
        found = ledger.read(empty)
        assert (found.file, found.rows, found.notes) == (None, (), Notes())


def test_every_change_is_a_file(records: ClusterStore) -> None:
    """A change creates the next file, complete, and leaves the earlier ones unchanged."""
    first = add(records, row("user=b", 1.0))
    content = on_disk(records.ledger / "00000001.parquet").read_bytes()
    second = add(records, row("user=a", None, INTENDED))

    assert (first, second) == ("00000001.parquet", "00000002.parquet")
    assert names(records.ledger) == [first, second]
    assert on_disk(records.ledger / "00000001.parquet").read_bytes() == content
    found = ledger.read(records)
    assert (found.file, found.rows) == (second, (row("user=a", None, INTENDED), row("user=b", 1.0)))


def test_a_change_that_changes_nothing_makes_no_file(records: ClusterStore) -> None:
    """The same rows, policy and commit again create no file, except the first."""
    made = ledger.change(records, lambda _: None, policy=POLICY, commit="c1")

    assert made == "00000001.parquet"
    assert ledger.change(records, lambda _: None, policy=POLICY, commit="c1") is None
    assert ledger.change(records, lambda _: None) is None
    assert names(records.ledger) == [made]


def test_policy_and_commits_stand_beside_the_rows(records: ClusterStore) -> None:
    """The last applied policy, and each applied commit once, in order of its last time."""
    for commit in ("c1", "c2", None, "c2", "c3", "c1"):
        ledger.change(records, lambda _: None, policy=POLICY, commit=commit)
    add(records, row("user=a", 1.0))

    found = ledger.read(records).notes
    assert (found.policy, found.commits) == (to_json(Policy, POLICY), ("c2", "c3", "c1"))


def test_a_policy_without_a_commit_is_not_the_end_of_an_earlier_one(records: ClusterStore) -> None:
    """A run of uncommitted files does not hide a commit that was written and not verified."""
    ledger.change(records, lambda _: None, policy=POLICY, commit="c1", sequence=1)
    ledger.change(records, lambda _: None, policy=POLICY, declared="other", sequence=3)

    found = ledger.read(records).notes
    assert (found.commits, found.applied_by) == (("c1",), 1)


def test_a_commit_of_files_that_were_run_before_is_not_equal_to_the_last(
    records: ClusterStore,
) -> None:
    """Files are applied uncommitted, then as commit c2: c1, which declares less, is not equal."""
    for commit, declared in (("c1", "first"), (None, "second"), ("c2", "second"), ("c3", "second")):
        ledger.change(records, lambda _: None, policy=POLICY, commit=commit, declared=declared)

    assert ledger.read(records).notes.equal == ("c2",)


def test_old_commits_are_forgotten(records: ClusterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many commits are kept, the last ones."""
    monkeypatch.setattr(ledger, "COMMITS_KEPT", 2)
    for commit in ("c1", "c2", "c3"):
        ledger.change(records, lambda _: None, policy=POLICY, commit=commit)

    assert ledger.read(records).notes.commits == ("c2", "c3")


WRITER = """
import sys
from quota_ops.store.places.run_store import RunStore, open_place
from tests.unit.test_ledger import add, row
writer = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
records = RunStore(open_place(sys.argv[1])).of_cluster("id")
for number in range(10):
    add(records, row(f"user={writer}-{number}", float(number)))
"""


def test_writers_lose_nothing_to_each_other(records: ClusterStore) -> None:
    """Four processes write at once; every row of each is there, and every file is one change."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(records.root), str(writer)],
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
    assert {one.entity: one.value for one in ledger.read(records).rows} == {
        f"user={writer}-{number}": float(number) for writer in range(4) for number in range(10)
    }
    assert names(records.ledger) == [f"{number:08d}.parquet" for number in range(1, 41)]


@pytest.mark.parametrize("content", [b"", b"PAR1 no", b"not at all"])
def test_a_damaged_ledger_is_no_empty_one(content: bytes, records: ClusterStore) -> None:
    """A damaged ledger is an error with the file and a remedy, for readers and writers."""
    add(records, row("user=a", 1.0))
    damaged = records.ledger / "00000002.parquet"
    on_disk(damaged).write_bytes(content)

    for act in (ledger.read, add):
        with pytest.raises(InvalidInput) as refused:
            act(records)
        assert refused.value.message.startswith(
            f"the ledger does not parse: {damaged} cannot be read as a "
        )
        assert refused.value.remedy == (
            "Nothing was changed. "
            "Move the damaged file elsewhere to continue from the file before it."
        )
    assert on_disk(damaged).read_bytes() == content
    assert names(records.ledger) == ["00000001.parquet", "00000002.parquet"]


def test_a_table_of_another_kind_is_no_ledger(records: ClusterStore) -> None:
    """A Parquet file is not enough: the columns must be those of the ledger."""
    add(records, row("user=a", 1.0))
    on_disk(records.ledger / "00000002.parquet").write_bytes(
        parquet.to_bytes(ACTUAL, parquet.from_rows(ACTUAL, []))
    )

    with pytest.raises(InvalidInput, match=r"the ledger does not parse: .* state is missing") as no:
        ledger.read(records)
    assert no.value.remedy == (
        "Nothing was changed. The file is not damaged: another version of quota-ops wrote it. Use "
        "that version, since without this file no run knows what it manages."
    )


def test_a_row_in_an_unknown_state_is_damage(records: ClusterStore) -> None:
    """A row that no run has written is an error, and is not left out."""
    add(records, row("user=a", 1.0))
    notes = parquet.notes(ledger.read(records).table)
    content = parquet.to_bytes(LEDGER, parquet.from_rows(LEDGER, [row("user=a", 1.0, "no")]), notes)
    on_disk(records.ledger / "00000002.parquet").write_bytes(content)

    with pytest.raises(InvalidInput, match=r"^the ledger does not parse: "):
        ledger.read(records)


@pytest.mark.parametrize("aside", ["00000002.parquet.bad", "00000002.bad.parquet", "copy.parquet"])
def test_a_file_that_was_moved_aside_does_not_count(aside: str, records: ClusterStore) -> None:
    """A file moved aside is ignored: the file before it is read, and its number is used again."""
    add(records, row("user=a", 1.0))
    on_disk(records.ledger / aside).write_bytes(b"damaged")
    on_disk(records.ledger / "00000002.parquet.0123.part").write_bytes(b"half")

    assert ledger.read(records).file == "00000001.parquet"
    assert add(records, row("user=b", 1.0)) == "00000002.parquet"


def test_an_absence_is_stored_as_long_as_an_intent_is(records: ClusterStore) -> None:
    """That a run found no value is needed only while an earlier write may still arrive."""
    absent, intent = row("user=a", None), row("user=a", 2.0, INTENDED)
    add(records, absent, intent)
    assert ledger.read(records).rows == (intent, absent)

    ledger.change(records, lambda known: known.pop(ledger_key(intent)))

    assert ledger.read(records).rows == ()


def test_a_key_may_be_remembered_with_many_values(records: ClusterStore) -> None:
    """Each value of a run is stored once: the same twice with one state is a damaged ledger."""
    values = (None, 1.0, 2.0, nan)
    given = [row("user=a", value, INTENDED, run=run) for value in values for run in ("r1", "r2")]
    add(records, *given, row("user=a", 1.0, CLEARED))
    last = ledger.read(records)

    assert last.table.num_rows == len(given) + 1
    twice = pa.concat_tables([last.table, last.table.slice(0, 1)])
    content = parquet.to_bytes(LEDGER, twice, parquet.notes(last.table))
    on_disk(records.ledger / "00000002.parquet").write_bytes(content)
    with pytest.raises(InvalidInput, match="has producer_byte_rate of user=a twice"):
        ledger.read(records)


@pytest.mark.parametrize(
    ("notes", "why"),
    [
        ({}, "it has no notes: another program wrote it"),
        ({"policy": "null"}, "Object missing required field `commits`"),
        ({"policy": "[]"}, "Expected `object | null`, got `array` - at `$.policy`"),
        ({"commits": "[1]"}, "Expected `str`, got `int` - at `$.commits[0]`"),
        ({"applied_by": '"7"'}, "Expected `int | null`, got `str` - at `$.applied_by`"),
        ({"another": "1"}, "Object contains unknown field `another`"),
    ],
)
def test_a_ledger_without_its_notes(notes: dict[str, str], why: str, records: ClusterStore) -> None:
    """Without them no guard knows what was applied: it is damaged, as without its rows."""
    add(records, row("user=a", 1.0))
    place = records.ledger / "00000002.parquet"
    on_disk(place).write_bytes(parquet.to_bytes(LEDGER, ledger.read(records).table, notes))

    with pytest.raises(InvalidInput) as raised:
        ledger.read(records)

    assert raised.value.message == f"the ledger does not parse: {place}: {why}"
