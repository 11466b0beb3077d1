"""diff: compare Git, the cluster and the ledger, with the same SQL on both engines."""

from collections.abc import Sequence

from quota_ops.sql.job import diff_runs
from quota_ops.store.run.folder import RunFolder

EMBEDDED = "embedded"
SPARK = "spark"


def find_differences(folders: Sequence[RunFolder], engine: str = EMBEDDED) -> None:
    """Write differences.parquet and overrides.parquet to every folder, by one job."""
    paths = [folder.place for folder in folders]
    if engine == SPARK:
        from quota_ops.sql.spark import SparkEngine, local_session  # noqa: PLC0415 - a JVM

        with local_session(paths) as spark:
            diff_runs(SparkEngine(spark), paths)
    else:
        from quota_ops.sql.embedded import EmbeddedEngine  # noqa: PLC0415 - DuckDB

        diff_runs(EmbeddedEngine(), paths)
