"""Diff one or many runs on Spark: `spark-submit diff_quotas.py RUN_FOLDER...`."""

import sys

from pyspark.sql import SparkSession

from quota_ops.model.errors import QuotaOpsError
from quota_ops.sql.client_effects import compare_large_inventories
from quota_ops.sql.job import diff_and_record
from quota_ops.sql.spark import SparkEngine
from quota_ops.sql.spark_effects import SparkEffects
from quota_ops.store.run_store import open_place

__all__ = ["main"]


def main(folders: list[str]) -> None:
    """Write differences and batches to each run folder, and record how each diff ended.

    If cluster.yaml names a large inventory, also writes which clients the differences concern.

    spark-submit sets master and memory. If some runs are damaged, the others get their results,
    and the job prints each damaged run with the reason and exits with code 2.
    """
    spark = SparkSession.builder.appName("quota-ops diff").getOrCreate()
    try:
        places = [open_place(folder) for folder in folders]
        diff_and_record(SparkEngine(spark), places)
        compare_large_inventories(SparkEffects(spark), places)
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
