"""The task diff: one Spark job over the run folders of a DAG run.

It runs on a Spark Connect server, or is started by spark-submit.
"""

import json
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from pwd import getpwuid
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from quota_ops.airflow.connection import find_airflow_connection
from quota_ops.airflow.errors import SparkFailed, log_errors
from quota_ops.airflow.runs import ClusterFolder, start_folder
from quota_ops.airflow.tasks import describe_result
from quota_ops.model.errors import InvalidInput, MissingTool
from quota_ops.model.runs.stages import StageResult, StageStatus, explain_failure
from quota_ops.model.text import counted
from quota_ops.store.places.place import Place

if TYPE_CHECKING:
    from airflow.sdk import Context

    from quota_ops.store.run.folder import RunFolder

_log = logging.getLogger(__name__)
SPARK = "quota_ops_spark"
"""The Airflow connection of Spark; without it, Spark runs on the worker."""
CONNECT = "spark_connect"
"""The type of a connection to a Spark Connect server; every other type is for spark-submit."""
FALLBACK = "fallback"
"""The extra of such a connection: the connection to use while its server does not respond."""
JOB = "spark_jobs.diff_quotas"
"""The module of the job; each host has its file at its own path."""
_WITHOUT_SERVER = (
    f"Start the server (in the sandbox: quota-ops down, then quota-ops up), or correct the Airflow "
    f"connection {SPARK}. Meanwhile, quota-ops plan CLUSTER compares without Spark."
)
LOCAL = '{"conn_type": "spark", "host": "local[*]"}'


class SparkDiff(SparkSubmitOperator):
    """Run spark_jobs/diff_quotas.py over the folders of this run whose cluster was described.

    The task is skipped if no cluster was described.
    """

    def __init__(
        self, *, clusters: Sequence[ClusterFolder], run_store: str | None, **options: Any
    ) -> None:
        super().__init__(application=JOB, conn_id=SPARK, name="quota-ops diff", **options)
        self.clusters = clusters
        self.run_store = run_store
        self._is_submitted = False

    def execute(self, context: "Context") -> str:  # type: ignore[override]
        """Write differences and batches to every folder, and return the results.

        Fails if one could not be compared. The job records in each folder how its diff ended.
        """
        from quota_ops.store.run.files import STAGE

        with log_errors():
            folders = [start_folder(cluster, self.run_store) for cluster in self.clusters]
            described = [
                folder
                for folder in folders
                if folder.stage_result("describe").status is StageStatus.DONE
            ]
            if not described:
                raise AirflowSkipException("no cluster was described")
            for folder in described:
                (folder.place / STAGE.of("diff")).delete()
            with record_missing_ends(described):
                self._compare(context, [folder.place for folder in described])
            result = self._describe_results(described)
        _log.info("%s", result)
        return result

    def _compare(self, context: "Context", places: Sequence[Place]) -> None:
        spark = find_airflow_connection(SPARK) or _run_on_this_worker()
        if spark.conn_type == CONNECT:
            if _has_compared(spark, places):
                return
            spark = _find_fallback(spark)
        self._submit(context, spark, places)

    def _submit(self, context: "Context", spark: Connection, places: Sequence[Place]) -> None:
        self.application = str(_find_job())
        self.application_args = [place.uri for place in places]
        self._conn_id = spark.conn_id
        self._is_submitted = True
        self.conf = choose_settings(spark, places)
        prepare_process(spark)
        try:
            super().execute(context)
        except AirflowException as error:
            raise SparkFailed("the Spark job failed; see its output above") from error

    def _describe_results(self, folders: Sequence["RunFolder"]) -> str:
        """Return what the diff found, which Airflow logs as the task's last line."""
        from quota_ops.model.quotas.tables import DIFFERENCES
        from quota_ops.store.places.parquet import to_values

        if len(folders) == 1:
            return describe_result("diff", folders[0])
        counts, kinds = dict[str, int](), Counter[str]()
        for run in folders:
            rows = run.read_table(DIFFERENCES)
            counts[str(run.about().cluster)] = rows.num_rows
            kinds.update(to_values(rows["kind"]))
        found = counted(kinds.total(), "difference")
        if kinds:
            of_kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
            differing = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
            found = f"{found} ({of_kinds}): {differing}"
        return f"{counted(len(counts), 'cluster')} compared, {found}."

    def on_kill(self) -> None:
        """End spark-submit, or the session on a server, which then stops its work."""
        if not self._is_submitted:
            raise SystemExit("the task was stopped")
        super().on_kill()


def _has_compared(spark: Connection, places: Sequence[Place]) -> bool:
    """Run the job in a session on a Spark Connect server.

    Returns False if the server does not respond and the connection declares a fallback. Raises
    SparkFailed if it declares none, or if Spark fails in the middle.
    """
    from quota_ops.sql.job import EngineFailed
    from quota_ops.sql.spark_connect import ServerUnreachable, connect
    from spark_jobs.diff_quotas import diff_quotas

    try:
        with connect(build_address(spark), _list_settings(spark)) as session:
            diff_quotas(session, places)
    except ServerUnreachable as error:
        if not spark.extra_dejson.get(FALLBACK):
            raise SparkFailed(error.message, _WITHOUT_SERVER) from error
        _log.warning("%s", error.message)
        return False
    except EngineFailed as error:
        raise SparkFailed(error.message, error.remedy) from error
    return True


def build_address(spark: Connection) -> str:
    """Return the address of a Spark Connect server, with the login of the connection as token.

    Host, port and the extra use_ssl are as in Airflow's connection type Spark Connect.
    """
    host = (spark.host or "localhost").removeprefix("sc://")
    parameters = {
        "user_id": spark.login,
        "token": spark.password,
        "use_ssl": str(spark.extra_dejson.get("use_ssl", "")).lower(),
    }
    given = "".join(
        f";{name}={quote(value, safe='')}" for name, value in parameters.items() if value
    )
    port = f":{spark.port}" if spark.port else ""
    return f"sc://{host}{port}{'/' if given else ''}{given}"


def _find_fallback(spark: Connection) -> Connection:
    """Return the connection for spark-submit which a connection to a server declares."""
    name = spark.extra_dejson[FALLBACK]
    found = find_airflow_connection(name)
    if found is None or found.conn_type == CONNECT:
        raise InvalidInput(
            f"the extra {FALLBACK} of the Airflow connection {SPARK} is {name!r}, which is not a "
            "connection for spark-submit",
            'Define it, for example as {"conn_type": "spark", "host": "local[*]"}.',
        )
    _log.warning("the job runs by spark-submit instead, with the connection %s", name)
    return found


@contextmanager
def record_missing_ends(folders: Sequence["RunFolder"]) -> Iterator[None]:
    """Record the end of diff in folders where the job did not.

    Raises InvalidInput instead of SparkFailed if the job recorded all ends: the input of some is
    damaged, and another try would find it so again.
    """
    began = monotonic()
    try:
        yield
    except BaseException as error:
        status, message = explain_failure(error)
        failed = StageResult("diff", status, round(monotonic() - began, 3), message)
        ends = [folder.stage_result("diff").status for folder in folders]
        for folder, end in zip(folders, ends, strict=True):
            if end is StageStatus.NOT_RUN:
                with suppress(InvalidInput):  # a failing store must not hide this error
                    folder.keep_end(failed)
        damaged = [end for end in ends if end is StageStatus.FAILED]
        if isinstance(error, SparkFailed) and damaged and StageStatus.NOT_RUN not in ends:
            raise InvalidInput(
                f"{len(damaged):,} of {counted(len(folders), 'cluster')} could not be compared; "
                "the output above has the reasons"
            ) from error
        raise


def _find_job() -> Path:
    """Return the file of the job without importing it."""
    spec = find_spec(JOB)
    if spec is None or spec.origin is None:
        raise MissingTool(f"{JOB} is not installed", "Install quota-ops with the extra [airflow].")
    return Path(spec.origin)


def _run_on_this_worker() -> Connection:
    """Define the Spark connection for this process, with this worker as its master."""
    os.environ[f"AIRFLOW_CONN_{SPARK.upper()}"] = LOCAL
    return Connection.from_json(LOCAL, conn_id=SPARK)


def _is_local(spark: Connection) -> bool:
    return re.match(r"local(\[|$)", spark.host or "") is not None


def choose_settings(spark: Connection, folders: Sequence[Place]) -> dict[str, str]:
    """Return the settings of the connection, and defaults for settings that it does not have.

    A cluster has an administrator, who chose its settings: quota-ops sets memory, JVM options and
    partitions only for a job on this worker.
    """
    ours = {"spark.ui.showConsoleProgress": "false"}
    if _is_local(spark):
        from quota_ops.sql.spark import list_driver_settings
        from quota_ops.sql.spark_archive import driver_options
        from quota_ops.sql.spark_s3 import list_settings

        if not spark.extra_dejson.get("spark-binary"):
            ours["spark.driver.defaultJavaOptions"] = driver_options()
            ours |= list_settings(folders, spark.extra_dejson)
        ours |= list_driver_settings(folders) | {"spark.log.level": "WARN"}
    return ours | _list_settings(spark)


def _list_settings(spark: Connection) -> dict[str, str]:
    """Return the extras of a connection that are settings of Spark."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in spark.extra_dejson.items()
        if name.startswith("spark.")
    }


def prepare_process(spark: Connection) -> None:
    """Choose the spark-submit and the Python for the job, unless the connection does."""
    extra = spark.extra_dejson
    if not extra.get("spark-binary"):
        from quota_ops.sql.spark_archive import find_spark

        folder = find_spark() / "bin"
        os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])
    if extra.get("deploy-mode") != "cluster":
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if _is_local(spark):
        _refuse_nameless_user()
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # listen on loopback only


def _refuse_nameless_user() -> None:
    """Raise InvalidInput if the user of this process has no name, because Hadoop looks it up."""
    try:
        getpwuid(os.getuid())
    except KeyError:
        raise InvalidInput(
            f"Spark does not start on this host, because the user {os.getuid()} has no name",
            "Add the user to /etc/passwd in the image, or run Spark elsewhere.",
        ) from None
