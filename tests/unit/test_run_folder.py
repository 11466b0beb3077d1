"""A run's folder: its artifacts, and the errors for missing or damaged ones."""

from functools import partial
from pathlib import Path

import pytest

from quota_ops.model.errors import ClusterTrouble, InvalidInput, Refused
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.stages import StageResult, StageStatus
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import ABOUT, APPLIED, POLICY
from quota_ops.store.run.folder import RunFolder
from tests.places import on_disk


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> RunFolder:
    return RunFolder(open_place(tmp_path))


def test_a_run_says_once_what_it_is(tmp_path: Path) -> None:
    """A later attempt does not change what the first one recorded."""
    run = tmp_path / "runs" / "demo" / "run-1"
    start = partial(RunFolder.start, open_place(run), dag_id="reconcile_demo")
    first = start(cluster="demo", commit="c1").about()

    assert start(cluster="other", commit="c2").about() == first
    assert (first.run, first.cluster, first.commit) == ("run-1", "demo", "c1")


def test_json_is_read_by_people(folder: RunFolder) -> None:
    """JSON files have one field or item per line, and names as they are."""
    folder.write_json("a.json", {"name": "é", "none": None, "empty": [], "items": [{"a": 1}, [2]]})

    assert (on_disk(folder) / "a.json").read_text("utf-8") == (
        '{\n"name": "é",\n"none": null,\n"empty": [],\n"items": [\n {"a":1},\n [2]\n]\n}\n'
    )
    assert folder.read_json("a.json") == {
        "name": "é",
        "none": None,
        "empty": [],
        "items": [{"a": 1}, [2]],
    }


def test_a_number_that_json_does_not_have_is_none(folder: RunFolder) -> None:
    """NaN and infinity are written as null, because other JSON parsers reject them."""
    folder.write_json("a.json", {"a": float("nan"), "rows": [{"b": float("inf")}]})

    assert folder.read_json("a.json") == {"a": None, "rows": [{"b": None}]}


def test_a_page_takes_any_text(folder: RunFolder) -> None:
    """Half a surrogate pair in a name does not prevent the report."""
    folder.write_text("report.txt", "a\ud800b")
    folder.write_json("a.json", {"name": "a\ud800b"})

    assert (on_disk(folder) / "report.txt").read_bytes() == b"a\\ud800b"
    assert folder.read_json("a.json") == {"name": "a\ud800b"}


def test_what_is_missing_names_its_stage(folder: RunFolder) -> None:
    """An artifact that an earlier stage did not write is never invented."""
    for read in (
        folder.about,
        folder.policy,
        folder.differences,
        folder.batches,
        lambda: folder.count(DIFFERENCES),
    ):
        with pytest.raises(
            InvalidInput, match=r"^/.* is missing: the stage that writes it has not run$"
        ):
            read()
    assert folder.outcomes(APPLIED) == ()
    assert folder.stage_result("apply") == StageResult("apply", StageStatus.NOT_RUN)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not valid JSON: "),
        (b"\xff\xfe\xfd", "is not valid JSON: "),
        (b"[]", "is not a JSON object"),
        (b"{}", "does not have the format of quota-ops 0.1.0: Object missing required field `"),
        (b'{"cluster": 1, "drift": "maybe"}', "does not have the format of quota-ops 0.1.0: "),
    ],
)
def test_what_is_damaged_is_named(content: bytes, said: str, folder: RunFolder) -> None:
    """A damaged artifact is an error with its place, however it is read."""
    for name, read in (
        (ABOUT, folder.about),
        (POLICY, folder.policy),
        (APPLIED, lambda: folder.outcomes(APPLIED)),
        ("stage-apply.json", lambda: folder.stage_result("apply")),
    ):
        (on_disk(folder) / name).write_bytes(content)
        with pytest.raises(InvalidInput) as refused:
            read()
        assert refused.value.message.startswith(f"{on_disk(folder) / name} {said}")


def test_what_cannot_be_read_is_named(folder: RunFolder) -> None:
    """Any error of the operating system while reading an artifact is reported."""
    (on_disk(folder) / ABOUT).mkdir()
    with pytest.raises(InvalidInput) as refused:
        folder.about()
    assert refused.value.message == f"{on_disk(folder) / ABOUT} cannot be read: Is a directory"


def test_policy_and_outcomes_come_back(folder: RunFolder) -> None:
    """Later stages read what check and apply wrote."""
    policy = Policy("demo", "id", "demo")
    outcomes = (Outcome(1, "user=a", ("k",), Status.ACCEPTED),)
    folder.write(POLICY, policy)
    folder.leave_outcomes(APPLIED, outcomes)

    assert (folder.policy(), folder.outcomes(APPLIED)) == (policy, outcomes)


def test_tables_come_back(folder: RunFolder) -> None:
    """Differences with their kind and action, and what each request writes, in order."""
    gone = Difference("id", "user=a", "k", Kind.GONE, Action.FORGET, *(None,) * 12)
    new = _replace_batch(gone, Kind.PENDING, 2)
    other = _replace_batch(new._replace(entity="user=b"), Kind.PENDING, 1)
    differences = (gone, new, other)
    folder.write_table(DIFFERENCES, differences)

    assert (folder.differences(), folder.count(DIFFERENCES)) == (differences, 3)
    assert folder.batches() == {1: (other,), 2: (new,)}


def _replace_batch(row: Difference, kind: Kind, batch: int) -> Difference:
    return row._replace(kind=kind, action=Action.SET, after=1.0, batch=batch)


def test_what_a_process_left_itself_it_does_not_read_again(folder: RunFolder) -> None:
    """A folder that remembers its artifacts returns them until it writes new ones."""
    left = (Outcome(1, "user=a", ("k",), Status.ACCEPTED),)
    gone = Difference("id", "user=b", "k", Kind.GONE, Action.FORGET, *(None,) * 12)
    change = _replace_batch(gone, Kind.PENDING, 1)
    keeping = folder.with_cache()
    keeping.leave_outcomes(APPLIED, left)
    folder.write_table(DIFFERENCES, [change])
    read = keeping.batches(), keeping.count(DIFFERENCES)
    folder.leave_outcomes(APPLIED, ())
    folder.write_table(DIFFERENCES, [])

    assert (keeping.outcomes(APPLIED), folder.outcomes(APPLIED)) == (left, ())
    assert (keeping.batches(), keeping.count(DIFFERENCES)) == read == ({1: (change,)}, 1)

    keeping.leave_outcomes(APPLIED, ())
    keeping.write_table(DIFFERENCES, [change, change])

    assert (keeping.outcomes(APPLIED), keeping.count(DIFFERENCES)) == ((), 2)
    assert keeping.batches() == {1: (change, change)}


def test_a_kind_that_nobody_knows_is_refused(folder: RunFolder) -> None:
    """A difference of an unknown kind is rejected."""
    row = ("id", "user=a", "k", "odd", "set")
    nothing = (None,) * (len(DIFFERENCES.columns) - len(row))
    folder.write_table(DIFFERENCES, [(*row, *nothing)])

    with pytest.raises(InvalidInput) as refused:
        folder.differences()

    assert str(refused.value) == (
        f"{on_disk(folder)}/differences.parquet is damaged: 'odd' is not a valid Kind"
    )


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (None, StageStatus.DONE, None),
        (Refused("no", "Do this."), StageStatus.REFUSED, "no\n  Do this."),
        (ClusterTrouble("gone"), StageStatus.FAILED, "gone"),
        (ZeroDivisionError("by zero"), StageStatus.FAILED, "ZeroDivisionError: by zero"),
        (KeyboardInterrupt(), StageStatus.INTERRUPTED, "interrupted by a signal"),
    ],
)
def test_how_a_stage_ended_is_kept(
    error: BaseException | None, status: StageStatus, message: str | None, folder: RunFolder
) -> None:
    """The exception of a stage continues, and the stage's end is recorded for the report."""
    raised: BaseException | None = None
    try:
        with folder.stage("apply"):
            if error is not None:
                raise error
    except type(error) as caught:  # type: ignore[misc]
        raised = caught

    found = folder.stage_result("apply")
    assert raised is error
    assert (found.stage, found.status, found.message) == ("apply", status, message)
    assert found.seconds is not None
