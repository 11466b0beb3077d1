"""Diff one or many runs on Spark: `spark-submit diff_quotas.py RUN_FOLDER...`.

With `--history RUN_STORE` as the first arguments, it then summarizes the history of all clusters.
With SPARK_REMOTE, `python diff_quotas.py RUN_FOLDER...` uses that Spark Connect server.
"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from quota_ops.model.errors import QuotaOpsError
from quota_ops.sql.client_effects import compare_large_inventories
from quota_ops.sql.history import summarize_history
from quota_ops.sql.history_engines import EngineBySize
from quota_ops.sql.job import diff_and_record
from quota_ops.sql.spark import SparkEngine, job_session
from quota_ops.sql.spark_effects import SparkEffects
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, open_place

__all__ = ["main"]


def diff_quotas(spark: SparkSession, folders: Sequence[Place], history: str | None) -> None:
    """Do in a session what `main` promises. Raises SomeDamaged, or the errors of `diff_runs`."""
    engine = SparkEngine(spark)
    try:
        diff_and_record(engine, folders)
        compare_large_inventories(SparkEffects(spark), folders)
    finally:
        if history is not None:
            _summarize(engine, history)


def _summarize(engine: SparkEngine, run_store: str) -> None:
    try:
        by_size = EngineBySize(lambda: engine)
        found = summarize_history(by_size, RunStore(open_place(run_store)), datetime.now(UTC))
    except QuotaOpsError as error:
        sys.stderr.write(f"the history was not summarized: {error}\n")
    else:
        sys.stdout.write(f"{found.as_text()}\n")


def main(folders: list[str], history: str | None = None) -> None:
    """Write differences and batches to each run folder, and record how each diff ended.

    If cluster.yaml names a large inventory, also writes which clients the differences concern.

    `history` is the run store whose history is summarized in the same session. If that fails,
    the job prints why, and ends as without it: the history is complete without a summary.

    spark-submit sets master and memory. If some runs are damaged, the others get their results,
    and the job prints each damaged run with the reason and exits with code 2.
    """
    try:
        with job_session("quota-ops diff") as spark:
            diff_quotas(spark, [open_place(folder) for folder in folders], history)
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--history"]:
        main(sys.argv[3:], sys.argv[2])
    else:
        main(sys.argv[1:])
