"""The diff by spark-submit: on a standalone cluster of two workers, and when it fails."""

import sys
from pathlib import Path

import pytest

from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.rows import ActualRow, DesiredRow
from quota_ops.model.runs.stages import StageStatus
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import diff_runs
from quota_ops.sql.spark_archive import driver_options, make_archive
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import find_pruned
from quota_ops.store.run.folder import RunFolder
from tests.engines.runs import batches, differences, put
from tests.engines.submitting import standalone_cluster, submit, workers_used

KEY = "producer_byte_rate"
CLUSTERS = ("one", "two")
Said = tuple[tuple[Difference, ...], list[Difference]]


def put_fleet(root: Path) -> list[Path]:
    """Create the run folders of two clusters that share their entities but not their values."""
    return [
        put(
            root / cluster,
            cluster,
            desired=[
                DesiredRow(cluster, f"user=u{one:03}", KEY, 1.0 + one, "team", None, "f.yaml", one)
                for one in range(100)
            ],
            actual=[
                ActualRow(cluster, f"user=u{one:03}", KEY, 2.0 * number, True, None)
                for one in range(50, 150)
            ],
            clear_unmanaged=cluster == "two",
        )
        for number, cluster in enumerate(CLUSTERS, start=1)
    ]


def said(folders: list[Path]) -> list[Said]:
    """Return the result of a diff in each folder."""
    return [(differences(folder), list(batches(folder))) for folder in folders]


@pytest.fixture(name="expected")
def _expected(tmp_path: Path) -> list[Said]:
    folders = put_fleet(tmp_path / "expected")
    diff_runs(EmbeddedEngine(), list(map(open_place, folders)))
    return said(folders)


@pytest.mark.matrix
def test_a_run_that_is_none(tmp_path: Path) -> None:
    """A damaged run ends the job with its name, the reason and a code; the others have results.

    The class path does not fit the class archive, which costs time and nothing else.
    """
    whole, broken = (put(tmp_path / name / "run", name) for name in ("whole", "broken"))
    (broken / "actual.parquet").write_text("broken")
    settings = {"spark.driver.extraClassPath": str(tmp_path / "other.jar")}
    job = submit("local[1]", whole, broken, settings=settings)

    refusal, noise = job.communicate()

    assert (job.returncode, refusal.splitlines()[:1]) == (
        2,
        ["1 of 2 clusters cannot be compared:"],
    )
    assert f"  broken: {broken}/actual.parquet cannot be read as a Parquet file" in refusal
    assert "Traceback" not in noise
    ends = [RunFolder(open_place(one)).stage_result("diff").status for one in (whole, broken)]
    assert ends == [StageStatus.DONE, StageStatus.FAILED]
    assert differences(whole) == ()
    left = [leaf.path for run in (whole, broken) for leaf in open_place(run).walk()]
    assert ("diff-0001.json" in left, [path for path in left if not find_pruned(path)]) == (
        True,
        [],
    )


@pytest.mark.matrix
def test_a_fleet_on_a_standalone_cluster(expected: list[Said], tmp_path: Path) -> None:
    """One job on both workers leaves in every run folder the result of the embedded engine."""
    folders = put_fleet(tmp_path)

    with standalone_cluster(tmp_path, workers=2) as master:
        job = submit(master, *folders)
        _, complaint = job.communicate()

    assert job.returncode == 0, complaint
    assert said(folders) == expected
    assert len(workers_used(tmp_path)) == 2


@pytest.mark.matrix
def test_a_class_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without an archive the log shows the command that makes one; with it, a job loads from it."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "an environment"))
    assert driver_options() == ""
    assert "python -m quota_ops.sql.spark_archive makes one" in caplog.text

    make_archive()

    log = tmp_path / "classes.log"
    job = submit(
        "local[1]",
        put(tmp_path / "run", "c"),
        settings={"spark.driver.defaultJavaOptions": f"-Xlog:class+load:file={log}"},
    )
    _, complaint = job.communicate()
    assert job.returncode == 0, complaint
    assert log.read_text().count("source: shared objects file (top)") > 10_000
