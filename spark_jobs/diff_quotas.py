"""Diff one or many runs on Spark: `spark-submit diff_quotas.py RUN_FOLDER...`."""

import sys

from pyspark.sql import SparkSession

from quota_ops.model.errors import QuotaOpsError
from quota_ops.sql.job import diff_runs
from quota_ops.sql.spark import SparkEngine
from quota_ops.store.run_store import open_place

__all__ = ["main"]


def main(folders: list[str]) -> None:
    """Write differences and batches to each run folder; spark-submit sets master and memory."""
    spark = SparkSession.builder.appName("quota-ops diff").getOrCreate()
    try:
        diff_runs(SparkEngine(spark), [open_place(folder) for folder in folders])
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
