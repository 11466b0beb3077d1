"""Run folders that were changed after the plan: nothing is written, and the reason is named."""

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput, QuotaOpsError, Refused
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, DIFFERENCES, LEDGER, Table
from quota_ops.model.runs.run import StoredPlan
from quota_ops.model.runs.stages import StageStatus
from quota_ops.model.stored import from_json
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.stages.apply.approved_plan import load_plan
from quota_ops.stages.report.forms import write_reports
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import (
    ABOUT,
    APPLIED,
    DESCRIBED,
    PLAN,
    POLICY,
    VALIDATED,
    VERIFICATION,
)
from quota_ops.store.run.folder import RunFolder
from tests.faults.table import ALL
from tests.lab import Lab, error_of, open_lab
from tests.places import on_disk
from tests.writing import State

KEY = "producer_byte_rate"
DESIRED_STATE: State = {"user=alice": {KEY: 10.0}, "user=<default>": {KEY: 20.0}}
Edit = Callable[[RunFolder], object]


def field(name: str, change: Callable[[dict[str, Any]], object]) -> Edit:
    """Edit a JSON artifact by hand."""

    def edit(folder: RunFolder) -> None:
        values = folder.read_json(name)
        change(values)
        (folder.place / name).replace(json.dumps(values).encode())

    return edit


def a_row(**change: Any) -> Edit:
    """Edit the plan's first row."""

    def edit(folder: RunFolder) -> None:
        first, *others = folder.differences()
        folder.write_table(DIFFERENCES, [first._replace(**change), *others])

    return edit


def digests_to_match(folder: RunFolder) -> str:
    """Write the digests that match the plan's rows now."""
    values = folder.read_json(PLAN) | {"rows": folder.digest_rows()}
    plan = Plan(**from_json(StoredPlan, values).head, differences=folder.differences())
    (folder.place / PLAN).replace(json.dumps(values | {"digest": plan.digest}).encode())
    return plan.digest


CHANGED = "differences.parquet was changed after the plan was made from it"


CASES = {
    "a row": (a_row(after=99.0), Refused, CHANGED),
    "a row left out": (
        lambda folder: folder.write_table(DIFFERENCES, folder.differences()[:-1]),
        Refused,
        CHANGED,
    ),
    "what is not in the digest of the plan": (a_row(owner="mallory"), Refused, CHANGED),
    "the cluster of a row": (a_row(cluster="another"), Refused, CHANGED),
    "a row is not sent": (a_row(batch=None), Refused, CHANGED),
    "the digest of the rows": (
        field(PLAN, lambda plan: plan.update(rows="0" * 64)),
        Refused,
        CHANGED,
    ),
    "a row and the digest of the rows": (
        lambda folder: (
            a_row(after=99.0)(folder),
            field(PLAN, lambda plan: plan.update(rows=folder.digest_rows()))(folder),
        ),
        Refused,
        "plan.json was changed after it was written",
    ),
    "a guard left out": (
        field(PLAN, lambda plan: plan["guards"].clear()),
        Refused,
        "plan.json does not record what the guards find",
    ),
    "the policy": (
        field(PLAN, lambda plan: plan["policy"].update(drift="report")),
        Refused,
        "plan.json was changed after it was written",
    ),
    "the policy beside it": (
        field(POLICY, lambda policy: policy.update(protect=[])),
        Refused,
        "policy.json is not the policy of the plan",
    ),
    "the broker was not asked": (
        lambda folder: (folder.place / VALIDATED).delete(),
        Refused,
        "the broker has not accepted 2 of 2 entities (validate-only)",
    ),
    "the broker refused": (
        field(VALIDATED, lambda said: said["outcomes"][0].update(status="refused")),
        Refused,
        "the broker has not accepted 1 of 2 entities (validate-only)",
    ),
    "no JSON": (
        lambda folder: (folder.place / PLAN).replace(b"{"),
        InvalidInput,
        "plan.json is not valid JSON",
    ),
    "no object": (
        lambda folder: (folder.place / PLAN).replace(b"[]"),
        InvalidInput,
        "plan.json is not a JSON object",
    ),
    "no plan": (
        lambda folder: (folder.place / PLAN).delete(),
        InvalidInput,
        "plan.json is missing: the stage that writes it has not run",
    ),
    "no Parquet": (
        lambda folder: (folder.place / DIFFERENCES.file).replace(b"PAR1"),
        InvalidInput,
        "differences.parquet cannot be read as a Parquet file",
    ),
}


@pytest.mark.parametrize(("edit", "kind", "words"), CASES.values(), ids=CASES)
def test_a_tampered_plan_is_not_written(
    edit: Edit, kind: type[QuotaOpsError], words: str, lab: Lab
) -> None:
    """A change in the run folder since the approval is named; cluster and ledger stay unchanged."""
    lab.desire(DESIRED_STATE, protect=[{"user": "operator"}])
    run = lab.planned()
    edit(run.folder)

    error = error_of(run, RESUMED)

    assert type(error) is kind
    assert words in error.message
    assert lab.stored() == {}
    assert not lab.records.ledger.exists()
    assert not run.folder.has(APPLIED)
    assert (run.folder.place / "report.html").exists()


def test_the_approval_is_of_another_plan(lab: Lab) -> None:
    """The digest comes from the approver: a plan rewritten with a matching digest is refused."""
    lab.desire(DESIRED_STATE)
    run = lab.planned()
    a_row(after=99.0)(run.folder)
    rewritten = digests_to_match(run.folder)

    error = error_of(run, RESUMED)

    assert str(error) == (
        f"the approval is for {str(run.approve)[:8]}, but this plan is {rewritten[:8]}\n"
        "  Nothing was written. Review the plan again, then approve its digest."
    )
    assert error_of(lab.resume(run.folder, approve=rewritten[:31]), RESUMED).exit_code == 1
    assert lab.stored() == {}


@pytest.mark.parametrize("table", [DESIRED, ACTUAL, LEDGER], ids=lambda one: one.name)
def test_a_table_of_another_cluster_is_not_compared(table: Table[Any], lab: Lab) -> None:
    """A file that came from another cluster's run is named, and nothing is planned from it."""
    lab.put({"user=alice": {KEY: 5.0}})
    lab.note({"user=alice": {KEY: 5.0}})
    lab.desire(DESIRED_STATE)
    run = lab.planned()
    rows = [("another", *row[1:]) for row in to_rows(run.folder.read_table(table))]
    run.folder.write_table(table, rows)

    error = error_of(run, ("diff", "plan", *RESUMED))

    assert isinstance(error, InvalidInput)
    assert error.message.startswith(
        f"{run.folder.place / table.file} is of the cluster another, but the run is of "
    )
    assert lab.stored() == {"user=alice": {KEY: 5.0}}


JUNK: tuple[Any, ...] = (None, 1, "x", [], {}, [None], [1], {"x": 1})
ARTIFACTS = (ABOUT, POLICY, DESCRIBED, PLAN, VALIDATED, APPLIED, VERIFICATION, "stage-apply.json")


@pytest.fixture(name="finished", scope="module")
def _finished(
    broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunFolder, RunStore, Plan]]:
    """Return a run that has ended, and its plan."""
    with open_lab(broker, tmp_path_factory.mktemp("finished")) as lab:
        lab.desire(DESIRED_STATE)
        run = lab.planned()
        run_stages(run, RESUMED)
        yield run.folder, run.folder.store, run.folder.plan()


@pytest.mark.parametrize("name", ARTIFACTS)
def test_a_damaged_artifact_is_told_and_hides_nothing(
    name: str, finished: tuple[RunFolder, RunStore, Plan], tmp_path: Path
) -> None:
    """Whatever a field contains, the user sees an error, or a report that names the damage."""
    whole, store, plan = finished
    folder = RunFolder(open_place(tmp_path / whole.place.name), only_read=store)
    shutil.copytree(on_disk(whole), on_disk(folder))
    for values in broken(whole.read_json(name)):
        (folder.place / name).replace(json.dumps(values).encode())
        told = error_from(partial(load_plan, folder, plan.digest))
        assert (
            told is None
            or str(folder.place) in str(told)
            or plan.digest[:8] in str(told)
            or "--as-of" in str(told)
        )
        if (unreadable := error_from(partial(read_report, folder))) is not None:
            assert str(on_disk(folder) / ABOUT) in unreadable.message
            continue
        ends = {stage.status for stage in write_reports(folder).stages}
        assert ends <= {StageStatus.DONE, StageStatus.FAILED, StageStatus.REFUSED}


def error_from(read: Callable[[], object]) -> QuotaOpsError | None:
    """Return the error shown to the user, or None."""
    try:
        read()
    except QuotaOpsError as error:
        return error
    return None


def broken(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the same with each field left out once, and replaced by each kind of junk.

    `make test` takes two kinds for a field, and others for the next field; `make faults` takes all.
    """
    junk = cycle(JUNK)
    for name in values:
        yield {one: value for one, value in values.items() if one != name}
        for wrong in islice(junk, len(JUNK) if ALL else 2):
            yield values | {name: wrong}
