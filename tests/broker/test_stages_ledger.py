"""Managed rows: the ledger intact, damaged or missing, and its effect on policy and guards."""

import shutil
from collections.abc import Callable

import pytest

from quota_ops.model.errors import GuardsRefused, InvalidDesiredState, InvalidInput
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.quotas.tables import LEDGER
from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.store.ledger import ledger
from quota_ops.store.places import parquet
from quota_ops.store.run.files import APPLIED, PLAN, VALIDATED
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY, TEN, outcomes
from tests.lab import Lab
from tests.places import copy_all, on_disk
from tests.writing import State

OURS: State = {"user=ours": {KEY: 1.0}}
OLD: State = {"user=old": {KEY: 2.0}}
THEIRS: State = {"user=theirs": {KEY: 3.0}}


def begin(lab: Lab) -> None:
    """Create a cluster with a row that Git declares, one that it dropped, and an unmanaged one."""
    lab.put({**OURS, **OLD, **THEIRS})
    lab.desire(OURS, clear_unmanaged=True)


def no_table(_last: bytes) -> bytes:
    """Return bytes that are not a table."""
    return b"PAR1"


def odd_entity(last: bytes) -> bytes:
    """Return a ledger of a row whose entity is none."""
    table = parquet.from_bytes(LEDGER, last, "")
    (row, *_) = parquet.to_rows(table)
    rows = parquet.from_rows(LEDGER, [LedgerRow(*row)._replace(entity="not an entity")])
    return parquet.to_bytes(LEDGER, rows, parquet.notes(table))


@pytest.mark.local_store
@pytest.mark.parametrize("damage", [no_table, odd_entity])
def test_a_ledger_that_does_not_parse(damage: Callable[[bytes], bytes], lab: Lab) -> None:
    """Nothing is written or cleared; with the damaged file moved aside, runs continue."""
    begin(lab)
    lab.note({**OURS, **OLD})
    damaged = lab.records.ledger / "00000002.parquet"
    damaged.replace(damage((lab.records.ledger / "00000001.parquet").read()))

    folder, error = lab.refused("reconcile")

    assert error.exit_code == 2
    assert error.message.startswith("the ledger does not parse: ")
    assert damaged.name in error.message
    assert error.remedy == (
        "Nothing was changed. Move the damaged file elsewhere to continue from the file before it."
    )
    assert lab.stored() == {**OURS, **OLD, **THEIRS}
    assert not folder.has(APPLIED)
    assert (folder.place / "report.html").exists()
    first, *_ = (folder.place / "report.txt").read().decode().split("\n")
    assert first == "describe failed, so the state of demo is unknown."

    damaged.delete()
    lab.run("reconcile")
    assert lab.stored() == lab.known() == OURS


@pytest.mark.local_store
def test_a_file_in_the_place_of_the_ledger(lab: Lab) -> None:
    """A file in the place of the ledger's folder is not an empty ledger: nothing is changed."""
    begin(lab)
    lab.note({**OURS, **OLD})
    shutil.rmtree(on_disk(lab.records.ledger))
    on_disk(lab.records.ledger).touch()

    _, error = lab.refused("reconcile")

    assert error.message == (
        f"the ledger cannot be read: {lab.records.ledger} cannot be listed: Not a directory"
    )
    assert lab.stored() == {**OURS, **OLD, **THEIRS}


def test_no_ledger_clears_nothing(lab: Lab) -> None:
    """Without a ledger nothing counts as managed: clear_unmanaged waits for a verified run.

    The next run, which has a ledger, clears.
    """
    begin(lab)

    first = lab.run("reconcile", allow={})

    assert lab.stored() == {**OURS, **OLD, **THEIRS}
    assert first.read_json(PLAN)["ledger"] is None
    assert lab.known() == OURS
    lab.run("reconcile")
    assert lab.stored() == lab.known() == OURS


def test_a_ledger_of_another_cluster(lab: Lab) -> None:
    """A ledger that was copied is named; one that lies beside it is not read."""
    begin(lab)
    lab.note({**OURS, **OLD})
    other = lab.store.of_cluster("another").ledger
    copy_all(lab.records.ledger, other)
    before = (other / "00000001.parquet").read()
    lab.run("reconcile")
    assert [(other / name).read() for name in other.list()] == [before]
    table = parquet.from_bytes(LEDGER, (other / "00000001.parquet").read(), "")
    rows = [("another", *row[1:]) for row in parquet.to_rows(table)]
    content = parquet.to_bytes(LEDGER, parquet.from_rows(LEDGER, rows), parquet.notes(table))
    (lab.records.ledger / "00000009.parquet").create(content)

    _, error = lab.refused("reconcile")

    assert isinstance(error, InvalidInput)
    place = lab.records.ledger / "00000009.parquet"
    assert (
        error.message == f"the ledger does not parse: {place} belongs to another cluster, another"
    )


def test_drift_that_asks(lab: Lab) -> None:
    """With `drift: ask` nothing is repaired before the guard is overridden."""
    lab.desire(OURS, drift="ask")
    lab.run("reconcile")
    lab.put({"user=ours": {KEY: 2.0}})

    folder, error = lab.refused("reconcile", allow={})

    assert isinstance(error, GuardsRefused)
    assert error.message == (
        "guards block this plan: "
        "drift: user=ours producer_byte_rate changed on the cluster, and the policy sets ask"
    )
    assert lab.stored() == {"user=ours": {KEY: 2.0}}
    assert outcomes(folder, VALIDATED) == {"user=ours": Status.ACCEPTED}
    assert not folder.has(APPLIED)
    lab.run("reconcile", allow={"drift": "agreed"})
    assert lab.stored() == OURS


def test_drift_that_is_only_reported(lab: Lab) -> None:
    """`drift: report` writes everything else; a drifted row stays, and stays managed."""
    lab.desire(OURS, drift="report")
    lab.run("reconcile")
    lab.put({"user=ours": {KEY: 9.0}})
    lab.desire({**OURS, **OLD}, drift="report")

    lab.run("reconcile", allow={})

    assert lab.stored() == {"user=ours": {KEY: 9.0}, **OLD}
    assert lab.known() == {**OURS, **OLD}


def test_a_commit_that_was_passed_and_a_policy_that_changed(lab: Lab) -> None:
    """The ledger has the last commits and policy, so both guards can block."""

    def reconcile(commit: str, allow: dict[str, str]) -> str:
        path = lab.store.new_run("demo")
        run = lab.resume(RunFolder.start(path, cluster="demo", commit=commit), allow=allow)
        try:
            run_stages(run, CHAINS["reconcile"])
        except GuardsRefused as error:
            return error.message
        return ""

    for commit, state in (("1" * 40, OURS), ("2" * 40, {**OURS, **OLD})):
        lab.desire(state)
        assert reconcile(commit, {}) == ""
    lab.desire(OURS)
    back = reconcile("1" * 40, {"owner_removed": "x"})
    assert "went_back: commit 1111111 was applied before, and 2222222 after it" in back
    lab.desire({**OURS, **OLD, **THEIRS}, drift="report", schedule="@daily")
    changed = reconcile("3" * 40, {})
    assert "policy_changed: cluster.yaml changed since it was applied: drift, schedule" in changed
    assert lab.stored() == {**OURS, **OLD}


def test_a_row_that_moves_to_another_file(lab: Lab) -> None:
    """Moving a quota between files changes nothing on the cluster; the ledger follows."""
    lab.desire(OURS)
    lab.run("reconcile")
    (lab.folder / "team.yaml").rename(lab.folder / "guild.yaml")

    folder = lab.run("reconcile", allow={})

    assert folder.differences() == ()
    assert [row.file for row in ledger.read(lab.records).rows] == ["guild.yaml"]


def test_two_folders_of_one_cluster(lab: Lab) -> None:
    """Two folders of one cluster are refused: each would clear what the other declares."""
    lab.desire(TEN)
    shutil.copytree(lab.folder, lab.folder.parent / "twin")

    _, error = lab.refused("reconcile")

    assert isinstance(error, InvalidDesiredState)
    assert "is already declared at" in error.message
    assert lab.stored() == {}
