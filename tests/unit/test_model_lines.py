"""Files with one row per line: snapshots and changes; and rows with unknown keys."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.alteration import read_changes
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.quotas.snapshot import read_snapshot
from quota_ops.precedence.resolution import Limits, list_limits

ALICE = Entity.of({USER: "alice"})
texts = st.text(st.characters(exclude_categories=["Cs"]))
entities = st.dictionaries(texts, texts | st.none(), min_size=1, max_size=3).map(Entity.of)
stored = st.dictionaries(st.tuples(entities, texts), st.floats(), max_size=5).map(
    lambda rows: [StoredQuota(*place, value) for place, value in rows.items()]
)


def line(entity: object, key: object, value: object) -> str:
    """Return a line of a snapshot."""
    return json.dumps({"entity": entity, "key": key, "value": value}) + "\n"


@given(stored)
def test_a_snapshot_keeps_every_row(rows: list[StoredQuota]) -> None:
    """Every row of a cluster, with unknown types and keys and NaN, is read back in order."""
    lines = [line(row.entity.as_dict(), row.key, row.value) for row in rows]

    found = read_snapshot(["\n", *lines], "snapshot.jsonl")

    assert [row[:2] for row in found] == [row[:2] for row in rows]
    assert all(same(quota.value, other.value) for quota, other in zip(found, rows, strict=True))


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "[]\n",
        "1\n",
        line({}, "k", 1),
        line(["user"], "k", 1),
        line({USER: 7}, "k", 1),
        line({USER: "a"}, None, 1),
        line({USER: "a"}, "k", True),
        line({USER: "a"}, "k", None),
        line({USER: "a"}, "k", "ten"),
        '{"entity": {"user": "a"}, "key": "k"}\n',
        '{"entity": {"user": "a", "user": "b"}, "key": "k", "value": 1}\n',
        '{"entity": {"user": "a"}, "key": "k", "value": 1, "value": 2}\n',
    ],
)
def test_a_line_that_is_no_row_is_named(wrong: str) -> None:
    """The error has the file and the line, and shows a valid row."""
    with pytest.raises(InvalidInput) as refused:
        read_snapshot([line({USER: "a"}, "k", 1), wrong], "snapshot.jsonl")

    assert refused.value.message == "snapshot.jsonl:2: this is not a row of a snapshot."
    assert (refused.value.remedy or "").startswith('A row is one line like {"entity": {"user": ')


def test_a_row_stands_once_in_a_snapshot() -> None:
    """The same key of one entity twice would be two current values."""
    row = line({USER: "alice"}, "k", 1)

    with pytest.raises(InvalidInput, match=r"^s.jsonl:2: user=alice has k twice\.$"):
        read_snapshot([row, row], "s.jsonl")


def test_a_change_has_each_field_once() -> None:
    """Of two values in one line, neither is written: a person may have read the other one."""
    twice = '{"entity": {"user": "a"}, "key": "producer_byte_rate", "value": 1, "value": 2}'

    with pytest.raises(InvalidInput, match=r"^c.jsonl:1: this is not a change\. A field is there"):
        read_changes([twice], "c.jsonl")


@pytest.mark.parametrize("lines", [[], ["\n", "  \n"]])
def test_a_file_without_a_change_is_refused(lines: list[str]) -> None:
    """A file without changes is a mistake, so it is rejected."""
    with pytest.raises(InvalidInput, match=r"^changes\.jsonl has no changes\n"):
        read_changes(lines, "changes.jsonl")


def test_keys_that_nobody_looks_up_are_left_out() -> None:
    """A key that this version does not know limits no client, and hides no known key."""
    known = StoredQuota(ALICE, "producer_byte_rate", 5.0)
    rows = [StoredQuota(ALICE, "storage_byte_rate", 1.0), known]

    found = Limits(rows).resolve("producer_byte_rate", user="alice", client_id="app")

    assert found.applied is not None
    assert found.applied.value == 5.0
    assert [row.value for row in list_limits(rows)] == [5.0]


def test_entities_that_no_client_reaches_are_left_out() -> None:
    """An address or an unknown type is not a level that applies to a client."""
    rows = [
        StoredQuota(Entity.of({IP: "10.0.0.1"}), "connection_creation_rate", 1.0),
        StoredQuota(Entity.of({"group": "a"}), "producer_byte_rate", 1.0),
        StoredQuota(Entity.of({CLIENT_ID: None}), "producer_byte_rate", 2.0),
    ]

    assert [row.entity for row in list_limits(rows)] == ["client-id=<default>"]
