"""The engine of the DAGs and the fleet jobs: Spark."""

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib.resources import as_file, files
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from quota_ops.model.errors import MissingTool, QuotaOpsError
from quota_ops.model.moment import timed
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, LEDGER, Table
from quota_ops.sql import text
from quota_ops.sql.attempt import DiffAttempt
from quota_ops.sql.embedded import judge
from quota_ops.sql.job import RESULTS, SIDES, ComparedRun, EngineFailed
from quota_ops.sql.spark_archive import KEEP_CODE, SMALL_JVM, driver_options
from quota_ops.sql.spark_connect import ADDRESS, connect, explain_failure
from quota_ops.sql.spark_s3 import list_settings
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import read_file
from quota_ops.store.places.place import Place

_log = logging.getLogger(__name__)
COMPARED = "_compared"
"""The folder of what compare.sql returns."""
_JUDGED = 4
"""Of how many runs the driver judges the rows and writes the results at the same time."""
LARGE_SIDES = (DESIRED, ACTUAL, LEDGER)
"""What executors read; the driver reads the others through the store: few rows for each cluster."""
LARGE_JVM = "-XX:+UseSerialGC"
SMALL_BYTES = 1_000_000
"""Bytes of Parquet, about 50,000 rows, below which planning and compiling is most of the work."""
SMALL_RUN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""The settings for a small run: a third less CPU at the first diff of a JVM."""
LARGE_BYTES = 4_000_000
"""Bytes of Parquet, about 200,000 rows, above which the full compiler is faster."""


class SparkEngine:
    """Runs the SQL on a Spark session; the caller stops the session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def diff(self, runs: Sequence[ComparedRun]) -> None:
        """Write the tables RESULTS to each run folder.

        Executors read the large sides and write what differs. The driver judges that, run by run.
        Raises EngineFailed, and InvalidInput if another attempt for one of the runs ended first.
        """
        sides = {table: [run.folder / table.file for run in runs] for table in LARGE_SIDES}
        is_small = len(runs) == 1 and measure_sides([runs[0].folder]) < SMALL_BYTES
        with DiffAttempt.begin(runs) as attempt:
            folders = {run.cluster: str(number) for number, run in enumerate(runs)}
            self.compare(sides, folders, attempt.place, SMALL_RUN if is_small else {})
            with ThreadPoolExecutor(_JUDGED) as threads:  # waits for the store
                for _ in threads.map(partial(_judge_run, attempt), range(len(runs))):
                    pass

    def compare(
        self,
        sides: Mapping[Table[Any], Sequence[Place]],
        folders: Mapping[str, str],
        to: Place,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write what compare.sql returns to `to`/COMPARED/folder=NAME.

        `folders` has names by cluster. Each folder has one file; a cluster without rows gets none.
        """
        # A broadcast passes through the driver, and Spark chooses it by compressed size, which says
        # little about memory. So only tables with a hint are broadcast.
        only_hints = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
        try:
            with change_settings(self._spark, only_hints | dict(settings)):
                self._compare(sides, folders, to)
        except (PySparkException, Py4JJavaError) as error:
            why = explain_failure(error)
            raise EngineFailed(f"Spark cannot compare the runs: {why}") from error

    def _compare(
        self, sides: Mapping[Table[Any], Sequence[Place]], folders: Mapping[str, str], to: Place
    ) -> None:
        for table in LARGE_SIDES:
            self._read_parquet(table, *sides[table]).createOrReplaceTempView(table.name)
        names = pa.table({"cluster": list(folders), "folder": list(folders.values())})
        by_cluster = self._spark.createDataFrame(names).hint("broadcast")
        with timed(_log, logging.DEBUG, "compare.sql in Spark"):
            rows = self._spark.sql(text.read_sql("compare")).join(by_cluster, "cluster")
            write = rows.repartition("folder").write.partitionBy("folder")
            write.option("maxRecordsPerFile", 0).parquet(hadoop_uri(to / COMPARED))

    def _read_parquet(self, table: Table[Any], *places: Place) -> DataFrame:
        """Read files that must all exist and be undamaged, whatever the session's settings."""
        read = self._spark.read.schema(spark_schema(table))
        read = read.option("ignoreCorruptFiles", False).option("ignoreMissingFiles", False)
        return read.parquet(*map(hadoop_uri, places))


def _judge_run(attempt: DiffAttempt, number: int) -> None:
    """Publish RESULTS of the rows of COMPARED of a run.

    Raises EngineFailed if the rows cannot be read, and the errors of `publish`.
    """
    written = attempt.place / COMPARED / f"folder={number}"
    results = tuple(parquet.from_rows(table, []) for table in RESULTS)
    for name in written.list():
        if name.endswith(".parquet"):
            try:
                rows = pq.read_table(pa.BufferReader(read_file(written / name)))
            except (pa.ArrowInvalid, OSError) as error:
                where = f"the result of Spark {written / name}"
                raise EngineFailed(f"{where} cannot be read: {error}") from error
            folder = attempt.runs[number].folder
            results = judge(rows, {table: folder / table.file for table in SIDES})
    attempt.publish(number, [*map(parquet.to_bytes, RESULTS, results)])


def spark_schema(table: Table[Any]) -> str:
    """Return a table's columns as Spark's DDL; Spark reads a column that a file lacks as null."""
    return ", ".join(f"`{column.name}` {column.type}" for column in table.columns)


def hadoop_uri(place: Place) -> str:
    """Return the address by which Hadoop's file systems, and so Spark, know a place."""
    return re.sub("^s3://", "s3a://", str(place))


def jvm_options(folders: Sequence[Place]) -> str:
    """Return the driver's JVM options: QUOTA_OPS_SPARK_JVM, or options that fit the input size."""
    if (chosen := os.environ.get("QUOTA_OPS_SPARK_JVM")) is not None:
        return chosen
    return LARGE_JVM if measure_sides(folders) > LARGE_BYTES else SMALL_JVM


def list_driver_settings(folders: Sequence[Place], more: str = "") -> dict[str, str]:
    """Return the settings of a Spark driver on this machine, with `more` options for its JVM."""
    options = jvm_options(folders)
    return KEEP_CODE | {
        "spark.driver.extraJavaOptions": f"{options} {more}".rstrip(),
        "spark.driver.memory": "2g" if options == LARGE_JVM else "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def measure_sides(folders: Sequence[Place]) -> int:
    """Return the bytes of the tables that a diff reads."""
    sides = {side.file for side in SIDES}
    return sum(leaf.size for folder in folders for leaf in folder.walk() if leaf.path in sides)


@contextmanager
def change_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session until the end of the block."""
    before = spark.conf.getAll
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with suppress(PySparkException):  # of a session that is lost with its server
            for name in settings:
                if name in before:
                    spark.conf.set(name, before[name])
                else:
                    spark.conf.unset(name)


@contextmanager
def job_session(name: str) -> Iterator[SparkSession]:
    """Yield the session of a job, and stop it at the end; print an error, and exit with its code.

    It is on the Spark Connect server of SPARK_REMOTE; without one, spark-submit chose where Spark
    runs.
    """
    try:
        if address := os.environ.get(ADDRESS):
            with connect(address, {}) as session:
                yield session
            return
        spark = SparkSession.builder.appName(name).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


@contextmanager
def local_session(folders: Sequence[Place]) -> Iterator[SparkSession]:
    """Yield a Spark session in this process and stop it at the end; reuse one that runs already.

    The master is SPARK_MASTER, or this machine. With SPARK_REMOTE, the session is on that Spark
    Connect server instead. Raises MissingTool without a suitable Java, and the errors of `connect`.
    """
    if address := os.environ.get(ADDRESS):
        with connect(address, {}) as session:
            yield session
        return
    if running := SparkSession.getActiveSession():
        yield running
        return
    try:
        archive = driver_options()
    except MissingTool as missing:
        remedy = f"{missing.remedy}\n  Without Java: --engine embedded"
        raise MissingTool(missing.message, remedy) from None
    with as_file(files("quota_ops.sql").joinpath("log4j2.properties")) as settings:
        log = f"-Dlog4j2.configurationFile={settings.as_uri()}"
        spark = (
            SparkSession.builder.appName("quota-ops diff")
            .master(os.environ.get("SPARK_MASTER", "local[*]"))
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.defaultJavaOptions", archive)
            .config(map={**list_settings(folders, {}), **list_driver_settings(folders, log)})
            .getOrCreate()
        )
        try:
            yield spark
        finally:
            spark.stop()
