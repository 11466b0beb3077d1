"""A run that starts again in its own folder, like a cleared DAG run."""

import pytest

from quota_ops.model.errors import GuardsRefused
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.store.ledger import ledger
from quota_ops.store.run.files import APPLIED, CLIENT_COUNTS, PLAN, VERIFICATION
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY, outcomes
from tests.lab import Lab, error_of
from tests.places import on_disk
from tests.writing import State

FIRST: State = {"user=alice": {KEY: 10e6}, "user=bob": {KEY: 10e6}}
SECOND: State = {"user=alice": {KEY: 20e6}, "user=bob": {KEY: 10e6}, "user=carol": {KEY: 10e6}}


def reconciled(lab: Lab, commit: str, state: State) -> RunFolder:
    """Return the folder of a run that brought the cluster to the state in Git at a commit."""
    lab.desire(state)
    folder = RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=commit)
    run_stages(lab.resume(folder), CHAINS["reconcile"])
    return folder


def test_an_old_run_that_is_cleared(lab: Lab) -> None:
    """A cleared old run is blocked by a guard, and its report omits what it once wrote."""
    old = reconciled(lab, "c1", FIRST)
    reconciled(lab, "c2", SECOND)
    before = ledger.read(lab.records).file
    lab.desire(FIRST)

    error = error_of(lab.resume(old, allow={}), CHAINS["reconcile"])

    assert isinstance(error, GuardsRefused)
    assert error.message == (
        "guards block this plan: unlimited: user=carol producer_byte_rate would lift the limit of "
        "clients; went_back: commit c1 was applied before, and c2 after it"
    )
    assert lab.stored() == SECOND
    assert ledger.read(lab.records).file == before
    assert [one for one in (APPLIED, VERIFICATION) if old.has(one)] == []
    said = (old.place / "report.txt").read().decode()
    assert said.startswith("2 changes to make on demo; 2 guards block the plan; 1 of 2")
    assert "accepted" not in said.replace("would be accepted", "")
    ends = [old.read_json(f"end-000{number}.json") for number in (1, 2)]
    assert [end["changed"] for end in ends] == [2, 0]


@pytest.mark.local_store
def test_what_an_attempt_came_to_is_kept(lab: Lab) -> None:
    """Each attempt that compared anything keeps its artifacts, in the order of attempts.

    What check wrote stays for an attempt that starts at describe: the clients of the inventory too.
    """
    run = reconciled(lab, "c1", FIRST)
    (lab.folder / "clients.csv").write_text("user,client-id\nalice,app\n")
    lab.desire(FIRST, inventory="clients.csv")
    run_stages(lab.resume(run), CHAINS["reconcile"])
    lab.put({"user=alice": {KEY: 20e6}})
    run_stages(lab.resume(run), CHAINS["reconcile"][1:])  # from describe on

    attempts = [RunFolder(run.place / f"attempt-000{number}") for number in (1, 2)]
    written = [len(outcomes(one)) for one in (*attempts, run)]
    assert written == [2, 0, 1]
    assert run.read(CLIENT_COUNTS).total.clients == 1
    assert all(attempt.has(PLAN) and attempt.has("report.html") for attempt in attempts)
    assert [on_disk(attempt).stat().st_mode & 0o777 for attempt in attempts] == [0o700, 0o700]
    assert [attempt.has("policy.json") for attempt in attempts] == [True, False], (
        "describe needs it"
    )
    assert not (run.place / "attempt-0003").exists()


def test_an_attempt_that_ends_as_it_begins(lab: Lab) -> None:
    """An attempt that ends in describe leaves no result of the previous attempt in the folder."""
    run = reconciled(lab, "c1", FIRST)
    (lab.records.ledger / "00000003.parquet").create(b"")

    error = error_of(lab.resume(run), ("describe",))

    assert error.message.startswith("the ledger does not parse")
    left = {"policy.json", "desired.parquet", PLAN, APPLIED, "stage-diff.json"}
    assert {name for name in left if run.has(name)} == {"policy.json", "desired.parquet"}
