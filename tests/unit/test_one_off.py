"""The changes given to `alter`, compared with Git."""

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

import pytest

from quota_ops.desired.export.one_off import OneOff
from quota_ops.desired.read import Desired, read_cluster
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import DriftPolicy, Policy
from quota_ops.model.quotas.alteration import Alteration, parse_changes, read_changes
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import DesiredRow, LedgerRow
from tests.yaml_cases import load_yaml

CASES = Path(__file__).parents[1] / "cases" / "alter"
P, C = "producer_byte_rate", "consumer_byte_rate"


def change_of(entity: str, key: str, before: float | None, after: float | None) -> Difference:
    """Return a row of an alter."""
    action = Action.CLEAR if after is None else Action.SET
    return Difference("id", entity, key, Kind.UNMANAGED, action, before, after)


def cases(name: str) -> Any:
    """Return the cases of a file."""
    return load_yaml((CASES / f"{name}.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", cases("flags"))
def test_flags_are_changes_or_an_error(case: Any) -> None:
    """A value of a known key is read as in YAML; an unknown key is left to the broker."""
    assert read_flags(case) == case.get("error", case.get("changes"))


def read_flags(case: Any) -> Any:
    """Return the changes, or the error, in the form that the cases use."""
    try:
        return list(map(list, parse_changes(case["add"], case["delete"])))
    except InvalidInput as error:
        return str(error)


def test_a_file_of_changes() -> None:
    """One change per line, as in a snapshot; null deletes; lines of one entity may be apart."""
    lines = [
        '{"entity": {"user": "a", "client-id": null}, "key": "producer_byte_rate", "value": 5}',
        '{"entity": {"ip": "::1"}, "key": "connection_creation_rate", "value": "unlimited"}',
        "",
        '{"entity": {"client-id": null, "user": "a"}, "key": "future_key", "value": null}',
    ]

    assert read_changes(lines, "f") == (
        Alteration(Entity.of({"user": "a", "client-id": None}), ((P, 5.0), ("future_key", None))),
        Alteration(Entity.of({"ip": "::1"}), (("connection_creation_rate", 2147483647.0),)),
    )


@pytest.mark.parametrize("case", cases("lines"))
def test_a_file_that_holds_no_changes(case: Any) -> None:
    """Each invalid line of a file of changes is named with its place."""
    with pytest.raises(InvalidInput) as error:
        read_changes(['{"entity": {"user": "b"}, "key": "k", "value": null}', case["line"]], "f")

    assert error.value.message == case["error"]


def git(known: Sequence[LedgerRow] | None = None, **policy: Any) -> OneOff:
    """Declare 10 MiB/s for alice's producers and 20 MiB/s for her consumers in Git.

    By default the ledger has exactly these values.
    """
    rows = [
        DesiredRow("id", "user=alice", key, value, "team", None, "team.yaml", line)
        for key, value, line in ((P, 10 * 2.0**20, 4), (C, 20 * 2.0**20, 5))
    ]
    if known is None:
        known = [ledger_row(row.entity, row.key, row.value) for row in rows]
    return OneOff(Desired(Policy("demo", "id", "demo", **policy), tuple(rows), 2), known)


def ledger_row(entity: str, key: str, value: float | None, state: str = "verified") -> LedgerRow:
    """Return a row of the ledger."""
    number = 2 if state == "intended" else 1
    return LedgerRow("id", entity, key, value, state, *(None,) * 3, "", "", number)


@pytest.mark.parametrize("case", cases("git"))
def test_when_git_will_set_it_back(case: Any) -> None:
    """Each change is compared with the file, the ledger, the drift policy and the schedule."""
    policy = case["policy"]
    if "drift" in policy:
        policy = policy | {"drift": DriftPolicy(policy["drift"])}
    change = change_of(case["entity"], case["key"], 1.0, case["after"])
    known = None
    if "ledger" in case:
        states = case["ledger"].items()
        known = [ledger_row(*change.id, value, state) for state, value in states]

    assert git(known, **policy).describe_effect(change.id, change.after) == case["words"]


@pytest.mark.parametrize("case", cases("keep"))
def test_the_yaml_that_would_keep_it(case: Any) -> None:
    """The printed entry includes what Git already declares for the entity."""
    changes = [change_of(entity, key, 1.0, after) for entity, key, after in case["changes"]]

    assert "".join(git().to_keep(changes)) == case["yaml"]


@pytest.mark.parametrize("case", cases("shared_entry"))
def test_what_more_an_entry_declares_is_not_lost(case: Any, tmp_path: Path) -> None:
    """YAML to keep a change is printed only where it loses nothing that the entry declares."""
    folder = tmp_path / "demo"
    folder.mkdir()
    profiles = "profiles: {gold: {producer_byte_rate: 9}}\n"
    (folder / "cluster.yaml").write_text(f"cluster_id: {'A' * 22}\nconnection: demo\n{profiles}")
    (folder / "fraud.yaml").write_text(f"owner: fraud\n{case['file']}")
    one_off = OneOff(read_cluster(folder, at="2026-06-01T00:00:00Z"))

    found = "".join(one_off.to_keep([change_of("user=a", P, 1.0, case.get("after", 5.0))]))
    assert found == case["yaml"]


def test_the_reason_stays_in_the_entry() -> None:
    """The YAML that would keep a change has the reason of the entry in Git."""
    row = DesiredRow("id", "user=bob", P, 7.0, "team", 'till: "7"', "team.yaml", 9)
    kept = OneOff(Desired(Policy("demo", "id", "demo"), (row,), 2)).to_keep(
        [change_of("user=bob", P, 7.0, 8.0)]
    )

    assert "".join(kept) == (
        "  # team.yaml:9: replaces the entry of user=bob\n"
        "  - user: bob\n"
        "    limits:\n"
        "      producer_byte_rate: 8\n"
        '    reason: "till: \\"7\\""\n'
    )


def test_what_changes_a_value() -> None:
    """None clears a key, and NaN is the same value as before."""
    sides = ((None, 1.0), (nan, nan), (2.0, None), (None, None))

    assert [change_of("user=a", P, *side).changes_value for side in sides] == [
        *(True, False, True, False)
    ]


def test_a_limit_of_the_whole_cluster_is_not_taken_for_that_of_a_broker() -> None:
    """Git's value is shown as that of the cluster."""
    rate = DesiredRow("A", "user=etl", P, 9.0, "team", None, "team.yaml", 3, "9 B/s per cluster")
    desired = Desired(Policy("demo", "A", "demo"), (rate._replace(whole=9.0),), 2)
    change = change_of("user=etl", P, 3.0, 9.0)

    told = OneOff(desired).describe_effect(change.id, change.after)
    assert told.startswith("team.yaml:3 declares 9 B/s per cluster: ")
