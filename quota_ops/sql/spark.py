"""The engine of the DAGs and the fleet jobs: Spark."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from quota_ops.model.errors import InvalidInput, MissingTool
from quota_ops.model.moment import timed
from quota_ops.model.tables import Table
from quota_ops.precedence.tables import CLIENTS, RESOLVED
from quota_ops.sql import text
from quota_ops.sql.job import SIDES
from quota_ops.sql.resolve import QUOTA_KEYS
from quota_ops.sql.spark_archive import SMALL_JVM, driver_options
from quota_ops.store.place import Place

_log = logging.getLogger(__name__)
LARGE_JVM = "-XX:+UseSerialGC"
LARGE_BYTES = 4_000_000
"""Bytes of Parquet, about 200,000 rows, above which the full compiler is faster."""


class SparkEngine:
    """Runs the SQL on a Spark session; the caller stops the session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def decide(self, sides: Mapping[Table[Any], Sequence[Place]]) -> tuple[pa.Table, pa.Table]:
        """Return the tables DIFFERENCES and BATCHES, computed from all files of each side.

        Only rows that differ are collected on the driver.
        """
        for table, places in sides.items():
            self._spark.read.parquet(*(one.uri for one in places)).createOrReplaceTempView(
                table.name
            )
        with timed(_log, logging.DEBUG, "diff.sql in Spark"):
            differences = self._spark.sql(text.diff_text()).toArrow()
        self._spark.createDataFrame(differences).createOrReplaceTempView("differences")
        with timed(_log, logging.DEBUG, "batches.sql in Spark"):
            return differences, self._spark.sql(text.batches_text()).toArrow()

    def resolve(self, clients: Path, limits: pa.Table, destination: Path) -> None:
        """Write RESOLVED to a folder of parts, from a .csv, .jsonl or .parquet file of CLIENTS."""
        views = {"quota_keys": QUOTA_KEYS, "limits": limits}
        for name, rows in views.items():
            self._spark.createDataFrame(rows).createOrReplaceTempView(name)
        self._read(clients).toDF("user_name", "client_id").createOrReplaceTempView("clients")
        is_csv = destination.suffix == ".csv"
        found = self._spark.sql(text.resolve_text(spreadsheet=is_csv)).toDF(*RESOLVED.names)
        write = found.write.mode("overwrite")
        try:
            with timed(_log, logging.DEBUG, "resolve.sql in Spark"):
                if is_csv:
                    write.csv(str(destination), header=True, escape='"')
                else:
                    write.parquet(str(destination))
        except (PySparkException, Py4JJavaError) as error:
            raise InvalidInput(
                f"Spark cannot resolve {clients}, or cannot write {destination}.",
                "The first error in the Spark log shows why.",
            ) from error

    def _read(self, clients: Path) -> DataFrame:
        read, place = self._spark.read.option("mode", "FAILFAST"), str(clients)
        if clients.suffix == ".csv":
            rows = read.csv(place, header=True, quote='"', escape='"', multiLine=True)
        elif clients.suffix == ".jsonl":
            rows = read.json(place, schema=", ".join(f"`{name}` STRING" for name in CLIENTS.names))
        else:
            rows = read.parquet(place)
        return rows.select(*(rows[f"`{name}`"].cast("string") for name in CLIENTS.names))


def jvm_options(folders: Sequence[Place]) -> str:
    """Return the driver's JVM options: QUOTA_OPS_SPARK_JVM, or options that fit the input size."""
    if (chosen := os.environ.get("QUOTA_OPS_SPARK_JVM")) is not None:
        return chosen
    sides = {side.file for side in SIDES}
    size = sum(leaf.size for one in folders for leaf in one.walk() if leaf.path in sides)
    return LARGE_JVM if size > LARGE_BYTES else SMALL_JVM


@contextmanager
def local_session(folders: Sequence[Place]) -> Iterator[SparkSession]:
    """Yield a Spark session in this process and stop it at the end; reuse one that runs already.

    The master is SPARK_MASTER, or this machine. Raises MissingTool without a suitable Java.
    """
    if running := SparkSession.getActiveSession():
        yield running
        return
    try:
        archive = driver_options()
    except MissingTool as missing:
        remedy = f"{missing.remedy}\n  Without Java: --engine embedded"
        raise MissingTool(missing.message, remedy) from None
    with as_file(files("quota_ops.sql").joinpath("log4j2.properties")) as settings:
        spark = (
            SparkSession.builder.appName("quota-ops diff")
            .master(os.environ.get("SPARK_MASTER", "local[*]"))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "2g")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.defaultJavaOptions", archive)
            .config(
                "spark.driver.extraJavaOptions",
                f"{jvm_options(folders)} -Dlog4j2.configurationFile={settings.as_uri()}",
            )
            .getOrCreate()
        )
        try:
            yield spark
        finally:
            spark.stop()
