"""verify on the folder of an old run: current results, and nothing old enters the ledger."""

import pytest

from quota_ops.model.commit import Provenance
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.runs import adoption
from quota_ops.runs.chain import run_stages
from quota_ops.store.ledger import ledger
from tests.broker.going_back import kinds, reconcile, run_at
from tests.broker.stage_runs import KEY
from tests.lab import Lab, error_of
from tests.writing import State

MOVED: State = {"user=bob": {KEY: 2.0}}
BEFORE: State = {"user=bob": {KEY: 1.0}, "user=given": {KEY: 1.0}}


@pytest.mark.usefixtures("impatient_verify")
def test_an_old_run_that_is_verified_again(lab: Lab) -> None:
    """Verifying an old run again fails and leaves the ledger unchanged; released rows stay so."""
    old = reconcile(lab, BEFORE, "c1")
    given = parse_exactly(["user=given"], [], [])
    adoption.release_quotas(old, lab.records, given, adoption.Attribution("anna", "search owns it"))
    reconcile(lab, MOVED, "c2", protect=[{"user": "zed"}])
    before = ledger.read(lab.records)

    error = error_of(lab.resume(old), ("verify", "report"))

    assert error.remedy == "The later run takes precedence. How it ended: quota-ops runs"
    assert ledger.read(lab.records).file == before.file
    assert (before.notes.commits, lab.known()) == (("c1", "c2"), MOVED)
    assert kinds(run_at(lab, "c3", "plan")) == {"user=given": "unmanaged"}


def test_an_old_run_that_was_never_read_back(lab: Lab) -> None:
    """Verifying an old run records what is still stored, and keeps the later commit and policy."""
    lab.desire({"user=given": {KEY: 1.0}})
    old = lab.planned()
    old.folder.change_about(provenance=Provenance("c1"))
    run_stages(old, ("apply",))
    lab.wait_for({"user=given": {KEY: 1.0}})
    lab.desire({"user=bob": {KEY: 2.0}}, protect=[{"user": "given"}])
    run_at(lab, "c2")
    assert lab.known() == MOVED

    error = error_of(old, ("verify",))

    assert error.message == "commit c2 was applied since this plan was made"
    after = ledger.read(lab.records)
    assert lab.known() == {**MOVED, "user=given": {KEY: 1.0}}
    assert after.notes.commits == ("c2",)
    assert after.notes.policy is not None
    assert after.notes.policy["protect"] != []
