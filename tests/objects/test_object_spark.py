"""Spark with a run store in a bucket, by spark-submit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quota_ops.model.quotas.tables import Table
from quota_ops.model.runs.stages import StageStatus
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import RESULTS, diff_runs
from quota_ops.sql.spark_s3 import fetch_connector, list_settings
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import find_pruned
from quota_ops.store.run.folder import RunFolder
from tests.engines.submitting import standalone_cluster, submit, workers_used
from tests.engines.test_spark_submit import put_fleet

pytestmark = pytest.mark.matrix


@pytest.fixture(params=["local[2]", "standalone"])
def master(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> Iterator[str]:
    """The address of a master: Spark in one process, or a cluster of two workers."""
    del address  # the workers have the credentials of this process
    with _start(request.param, tmp_path) as master:
        yield master


@contextmanager
def _start(kind: str, folder: Path) -> Iterator[str]:
    if kind != "standalone":
        yield kind
        return
    with standalone_cluster(folder, workers=2) as master:
        yield master
    assert len(workers_used(folder)) == 2


def test_spark_and_a_bucket(master: str, address: str, tmp_path: Path) -> None:
    """The job gives the results of the embedded engine; drivers and workers share the bucket only.

    A damaged run in the same job costs itself, and no attempt leaves anything behind.
    """
    fetch_connector()
    local = put_fleet(tmp_path / "expected")
    diff_runs(EmbeddedEngine(), list(map(open_place, local)))
    store = open_place(address)
    folders = [_copy(folder, store / "runs" / folder.name / "run") for folder in local]
    broken = _copy(local[0], store / "runs" / "broken" / "run")
    (broken / "actual.parquet").replace(b"broken")
    settings = list_settings([store], {})

    job = submit(master, *(place.uri for place in (*folders, broken)), settings=settings)
    refusal, complaint = job.communicate()

    assert (job.returncode, refusal.splitlines()[:1]) == (
        2,
        ["1 of 3 clusters cannot be compared:"],
    ), complaint
    for there, here in zip(folders, map(open_place, local), strict=True):
        for table in RESULTS:
            assert _read(there / table.file, table).equals(_read(here / table.file, table))
        assert RunFolder(there).stage_result("diff").status is StageStatus.DONE
        assert [entry.name for entry in there.entries() if entry.is_folder] == []
        assert [leaf.path for leaf in there.walk() if not find_pruned(leaf.path)] == []


def _copy(folder: Path, to: Place) -> Place:
    for file in folder.iterdir():
        if not file.name.startswith(("diff", "overrides")):
            (to / file.name).replace(file.read_bytes())
    return to


def _read(place: Place, table: Table[Any]) -> pa.Table:
    return parquet.from_bytes(table, place.read(), str(place))
