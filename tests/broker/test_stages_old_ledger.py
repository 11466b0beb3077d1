"""A ledger that was replaced by an older copy."""

import pytest

from quota_ops.model.errors import GuardsRefused
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.runs.adoption import Attribution, release_quotas
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY
from tests.lab import Lab
from tests.places import copy_all, delete_all
from tests.writing import State

OURS: State = {"user=ours": {KEY: 10e6}}
RELEASED: State = {"user=released": {KEY: 10e6}}
GUARDS = ["unlimited", "old_ledger"]
ALLOWED = {"owner_removed": "a test", "unlimited": "a test"}


def test_what_was_released_since_is_not_cleared(lab: Lab) -> None:
    """The copy has it as managed, so a guard blocks; with nothing left to clear, it does not."""
    lab.desire({**OURS, **RELEASED})
    lab.run("reconcile")
    copy_all(lab.records.ledger, lab.store.root / "copy")
    lab.desire(OURS)
    let_go(lab, "user=released")
    lab.run("reconcile")
    newest = max(lab.records.ledger.list())
    delete_all(lab.records.ledger)
    copy_all(lab.store.root / "copy", lab.records.ledger)

    folder, error = lab.refused("reconcile", allow=ALLOWED)

    assert isinstance(error, GuardsRefused)
    assert error.message == (
        "guards block this plan: old_ledger: user=released producer_byte_rate would "
        f"be cleared based on an older copy of the ledger, whose newest file was {newest}"
    )
    assert lab.stored() == {**OURS, **RELEASED}
    guards = [one["guard"] for one in folder.read_json(PLAN)["guards"]]
    assert guards == GUARDS

    let_go(lab, "user=released")
    lab.run("reconcile", allow={})

    assert lab.stored() == {**OURS, **RELEASED}
    assert lab.known() == OURS


def let_go(lab: Lab, entity: str) -> None:
    """Take a row out of the ledger."""
    folder = RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=None)
    release_quotas(folder, lab.records, parse_exactly([entity], [], []), Attribution("anna", "x"))


def test_what_one_was_told_of_does_not_speak_for_the_others(lab: Lab) -> None:
    """Two were released, and one is taken out of the copy: the other still needs approval."""
    others: State = {"user=other": {KEY: 10e6}}
    lab.desire({**OURS, **RELEASED, **others})
    lab.run("reconcile")
    copy_all(lab.records.ledger, lab.store.root / "copy")
    lab.desire(OURS)
    let_go(lab, "user=released")
    let_go(lab, "user=other")
    lab.run("reconcile")
    delete_all(lab.records.ledger)
    copy_all(lab.store.root / "copy", lab.records.ledger)
    let_go(lab, "user=released")

    folder, _ = lab.refused("reconcile", allow=ALLOWED)

    assert [one["guard"] for one in folder.read_json(PLAN)["guards"]] == GUARDS
    assert lab.stored() == {**OURS, **RELEASED, **others}


def test_a_copy_that_has_as_many_files_as_the_ledger(lab: Lab) -> None:
    """After the ledger was lost, an older copy whose newest file has the same number is noticed."""
    lab.desire({**OURS, **RELEASED})
    lab.run("reconcile")
    copy_all(lab.records.ledger, lab.store.root / "copy")
    delete_all(lab.records.ledger)
    lab.desire(OURS)
    lab.run("reconcile")
    lab.run("reconcile")
    files = lab.records.ledger.list()
    assert set(files) == set((lab.store.root / "copy").list())
    delete_all(lab.records.ledger)
    copy_all(lab.store.root / "copy", lab.records.ledger)

    _, error = lab.refused("reconcile", allow=ALLOWED)

    assert isinstance(error, GuardsRefused)
    assert error.message == (
        "guards block this plan: old_ledger: user=released producer_byte_rate would be cleared "
        f"based on a changed ledger, or another copy of it: its {max(files)} is not the file that "
        "a run wrote last"
    )
    assert lab.stored() == {**OURS, **RELEASED}


ALTER = ("alter", "demo", "--names", "user=operator", "--add", f"{KEY}=5")
ANEW = "a new ledger, because the one before was, or may have been, lost"


@pytest.mark.parametrize(
    ("begin", "is_end_lost"),
    [
        ((*ALTER, "--allow", "unprotected"), False),
        ((*ALTER, "--allow", "unprotected"), True),
        (("adopt", "demo", "--all"), False),
        (("release", "demo", "--from-ledger", "--all"), False),
    ],
    ids=["alter", "alter without the end", "adopt", "release"],
)
def test_an_alter_without_the_last_ledger_is_blocked(
    lab: Lab, begin: tuple[str, ...], *, is_end_lost: bool
) -> None:
    """With the ledger lost, nobody knows whom the last applied policy protects.

    A command that begins a ledger does not change that, until a run is verified.
    """
    lab.desire(OURS, protect=[{"user": "operator"}])
    lab.run("reconcile")
    lab.desire(OURS)
    assert "user=operator is protected" in lab.call(*ALTER).stderr
    lost = f"no ledger: its newest file, {max(lab.records.ledger.list())}, is lost"
    delete_all(lab.records.ledger)
    if is_end_lost:
        lab.records.ledger_end.delete()
        lost = (
            "no ledger, although runs have begun to apply: it is lost, or none of them has written "
            "or verified anything"
        )

    blocked = [lab.call(*ALTER)]
    began = lab.call(*begin, "--reason", "INC-31")
    blocked.append(lab.call(*ALTER))
    lab.run("reconcile")
    verified = lab.call(*ALTER)

    assert (began.returncode, verified.returncode) == (0, 0), began.stderr + verified.stderr
    unknown = (
        "guards block this plan: unprotected: it is unknown what the last applied cluster.yaml "
        "protects, and its thresholds: "
    )
    assert [one.returncode for one in blocked] == [1, 1]
    assert [one.stderr.partition("\n")[0] for one in blocked] == [unknown + lost, unknown + ANEW]


def test_a_rollback_after_a_lost_ledger_is_blocked(lab: Lab) -> None:
    """An adopted ledger has no policy either, which a rollback would take from the last run."""
    lab.desire(OURS)
    run = lab.run("reconcile")
    delete_all(lab.records.ledger)
    assert lab.call("adopt", "demo", "--all", "--reason", "INC-31").returncode == 0

    back = lab.call("rollback", str(run.place), "--reason", "INC-31")

    assert back.returncode == 1
    assert "unprotected: it is unknown what the last applied cluster.yaml protects" in back.stdout
    assert ANEW in back.stdout
