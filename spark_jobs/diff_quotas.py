"""Diff one or many runs on Spark: `spark-submit diff_quotas.py RUN_FOLDER...`.

With SPARK_REMOTE, `python diff_quotas.py RUN_FOLDER...` uses that Spark Connect server.
"""

import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession

from quota_ops.sql.client_effects import compare_large_inventories
from quota_ops.sql.job import diff_and_record
from quota_ops.sql.spark import SparkEngine, job_session
from quota_ops.sql.spark_effects import SparkEffects
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place

__all__ = ["main"]


def diff_quotas(spark: SparkSession, folders: Sequence[Place]) -> None:
    """Do in a session what `main` promises. Raises SomeDamaged, or the errors of `diff_runs`."""
    diff_and_record(SparkEngine(spark), folders)
    compare_large_inventories(SparkEffects(spark), folders)


def main(folders: list[str]) -> None:
    """Write differences and overrides to each run folder, and record how each diff ended.

    If cluster.yaml has a large inventory, also writes which clients the differences affect.

    spark-submit sets master and memory. If some runs are damaged, the others get their results,
    and the job prints each damaged run with the reason and exits with code 2.
    """
    with job_session("quota-ops diff") as spark:
        diff_quotas(spark, [open_place(folder) for folder in folders])


if __name__ == "__main__":
    main(sys.argv[1:])
