"""A ledger that was put back to an older copy."""

import shutil

from quota_ops.model.errors import GuardsRefused
from quota_ops.model.specification import parse_exactly
from quota_ops.run_folder import PLAN, RunFolder
from quota_ops.stages.ownership import Word, release
from tests.broker.stage_runs import KEY
from tests.lab import Lab, State

OURS: State = {"user=ours": {KEY: 10e6}}
RELEASED: State = {"user=released": {KEY: 10e6}}


def test_what_was_released_since_is_not_cleared(lab: Lab) -> None:
    """The copy calls it ours, so a guard asks; what the ledger is told then silences the guard."""
    lab.desire({**OURS, **RELEASED})
    lab.run("reconcile")
    shutil.copytree(lab.ledger_folder, lab.root / "copy")
    lab.desire(OURS)
    let_go(lab)
    lab.run("reconcile")
    shutil.rmtree(lab.ledger_folder)
    shutil.copytree(lab.root / "copy", lab.ledger_folder)

    folder, error = lab.refused("reconcile", allow={"owner_removed": "a test"})

    assert isinstance(error, GuardsRefused)
    assert error.message == (
        "guards ask for a person: old_ledger: user=released producer_byte_rate would go by an "
        "older copy of the ledger: it was at 00000003.parquet"
    )
    assert lab.held() == {**OURS, **RELEASED}
    assert [one["guard"] for one in folder.read_json(PLAN)["guards"]] == ["old_ledger"]

    let_go(lab)
    lab.run("reconcile", allow={})

    assert lab.held() == {**OURS, **RELEASED}
    assert lab.known() == OURS


def let_go(lab: Lab) -> None:
    """Take the row out of the ledger."""
    folder = RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=None)
    release(folder, lab.ledger_folder, parse_exactly(["user=released"], [], []), Word("anna", "x"))
