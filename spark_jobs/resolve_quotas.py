"""Resolve many clients on Spark: `spark-submit resolve_quotas.py SNAPSHOT CLIENTS OUTPUT`."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from quota_ops.frames.resolve import resolve_clients
from quota_ops.frames.spark import SparkEngine
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.snapshot import read_snapshot


def main(snapshot: str, clients: str, output: str) -> None:
    """Write what holds for each client; master and memory are spark-submit's."""
    spark = SparkSession.builder.appName("quota-ops resolve").getOrCreate()
    try:
        lines = Path(snapshot).read_text(encoding="utf-8").split("\n")
        stored = read_snapshot(lines, snapshot)
        resolve_clients(SparkEngine(spark), stored, Path(clients), Path(output))
    except QuotaOpsError as error:
        sys.exit(f"{error}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
