"""diff: compare Git, the cluster and the ledger; only the first query may run on Spark."""

from quota_ops.sql.job import diff_runs
from quota_ops.store.run.folder import RunFolder

EMBEDDED = "embedded"
SPARK = "spark"


def find_differences(folder: RunFolder, engine: str = EMBEDDED) -> None:
    """Write differences.parquet and overrides.parquet of a run."""
    if engine == SPARK:
        from quota_ops.sql.spark import SparkEngine, local_session  # a JVM

        with local_session([folder.place]) as spark:
            diff_runs(SparkEngine(spark), [folder.place])
    else:
        from quota_ops.sql.embedded import EmbeddedEngine  # DuckDB

        diff_runs(EmbeddedEngine(folder.kept or {}), [folder.place])
