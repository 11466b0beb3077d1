"""The class archive of Spark, which saves about a third of the CPU time of a job's start.

`python -m quota_ops.sql.spark_archive` makes it, once per version of Java and Spark. It is in the
environment of the Python that has pyspark, because it works only for the jars at that place: an
image that has the environment has it too, and it is removed with the environment.
"""

import logging
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from quota_ops.jvm.class_archive import ClassArchive, record_classes
from quota_ops.jvm.java import find_java
from quota_ops.model.errors import ClusterTrouble, MissingTool, QuotaOpsError
from quota_ops.model.quotas.quota import BYTE_KEY
from quota_ops.model.quotas.rows import ActualRow, ClusterRow, DesiredRow, HoldRow, LedgerRow
from quota_ops.model.quotas.tables import ACTUAL, CLUSTERS, DESIRED, DIFFERENCES, HOLDS, LEDGER
from quota_ops.store.places import parquet

_log = logging.getLogger(__name__)
_SECONDS = 600.0
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Halves the CPU time of a cold start and a small diff; doubles the time for a million rows."""
KEEP_CODE = {"spark.sql.codegen.cache.maxEntries": "1000"}
"""For Spark to keep the classes that it compiles: a diff has 105, and its own limit is 100."""
_KEY = ("training", "user=a", BYTE_KEY)
_ROWS = (
    (DESIRED, [DesiredRow(*_KEY, 2.0, "team", None, "team.yaml", 1)]),
    (ACTUAL, [ActualRow(*_KEY, 1.0, True, None)]),
    (LEDGER, [LedgerRow(*_KEY, 1.0, "verified", None, None, None, "run", "2026-01-01T00:00:00Z")]),
    (HOLDS, [HoldRow("training", "user=b", "until tomorrow")]),
    (CLUSTERS, [ClusterRow("training", "repair", clear_unmanaged=False)]),
)
"""A run with one difference, so that a job loads the classes of every step."""


def find_spark() -> Path:
    """Return the folder of Spark in the installed pyspark. Raises MissingTool without it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingTool("pyspark is not installed", "Install quota-ops with the extra [spark].")
    return Path(spec.origin).parent


def driver_options() -> str:
    """Return the JVM options with which a driver of the installed Spark uses its archive.

    Without a usable archive, returns an empty text and logs a warning. Raises MissingTool without
    Java.
    """
    options = _archive().options()
    if not options:
        _log.warning(
            "Spark starts without an archive of its classes, which would save a third of its CPU; "
            "python -m quota_ops.sql.spark_archive makes one"
        )
    return shlex.join(options)


def make_archive() -> None:
    """Make the archive by one run of the diff job, unless it exists and is undamaged.

    Raises MissingTool without Java or pyspark, ClusterTrouble if the job fails.
    """
    archive = _archive()
    if archive.options():
        return
    sys.stderr.write("preparing Spark for quick starts, once ...\n")
    with archive.recording_folder() as scratch:
        folder, recorded = scratch / "run", scratch / "spark.jsa"
        write_training_run(folder)
        _run_job(folder, record_classes(recorded))
        archive.keep(recorded)


def write_training_run(folder: Path) -> None:
    """Create a run folder whose diff loads the classes of every step."""
    folder.mkdir()
    for table, rows in _ROWS:
        content = parquet.to_bytes(table, parquet.from_rows(table, rows))
        (folder / table.file).write_bytes(content)


def _archive() -> ClassArchive:
    jars = find_spark() / "jars"
    return ClassArchive(
        folder=Path(sys.prefix) / "share" / "quota-ops",
        program="spark",
        java=find_java(),
        class_path=sorted(jars.glob("*.jar")),
    )


def _run_job(folder: Path, options: tuple[str, ...]) -> None:
    job = find_spec("spark_jobs.diff_quotas")
    if job is None or job.origin is None:
        raise MissingTool("spark_jobs is not installed", "Install the wheel of quota-ops.")
    settings = {
        "spark.driver.extraJavaOptions": f"{SMALL_JVM} {shlex.join(options)}",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    command = [str(find_spark() / "bin" / "spark-submit"), "--master=local[*]"]
    command += [f"--conf={name}={value}" for name, value in settings.items()]
    environment = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    ended = subprocess.run(
        [*command, job.origin, str(folder)],
        env=environment | {"PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if ended.returncode != 0 or not (folder / DIFFERENCES.file).exists():
        output = f"{ended.stderr}{ended.stdout}"  # Python's traceback is in the second
        raise ClusterTrouble(f"the Spark job that makes the archive failed:\n{output}")


def main() -> int:
    """Make the archive; continue without it on failure."""
    try:
        make_archive()
    except (QuotaOpsError, OSError, subprocess.TimeoutExpired) as error:
        sys.stderr.write(f"Spark will start slower: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
