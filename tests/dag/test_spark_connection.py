"""The command that spark-submit gets from an Airflow connection."""

import shlex
import sys
from pathlib import Path
from time import sleep

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from tests.dag.recording import SUBMIT, record_command, set_connection
from tests.dag.repository import close_pipes
from tests.docs.markdown import ROOT, Page

QUIET = ("spark.ui.showConsoleProgress", "false")


def submitted(record: Path) -> tuple[list[str], list[str], str]:
    """Return the settings of a job, the other arguments before it, and the driver's Python."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

    from quota_ops.airflow.connection import find_airflow_connection
    from quota_ops.airflow.spark import SPARK, choose_settings, prepare_process

    connection = find_airflow_connection(SPARK)
    assert connection is not None
    prepare_process(connection)
    SparkSubmitHook(conf=choose_settings(connection, []), conn_id=SPARK).submit("job.py")
    *words, job, python = record.read_text().splitlines()
    assert job == "job.py"
    pairs = list(zip(words[::2], words[1::2], strict=True))
    settings = [value for name, value in pairs if name == "--conf"]
    others = [word for pair in pairs if pair[0] != "--conf" for word in pair]
    return settings, others, python


@pytest.fixture(name="record")
def _record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record the command; the environment is as before after the test."""
    close_pipes(monkeypatch)
    for name in ("PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    return record_command(tmp_path, monkeypatch)


@pytest.mark.usefixtures("record")
def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop needs the name of the user, so the task ends with what to do, before Spark starts."""
    from quota_ops.airflow.connection import find_airflow_connection
    from quota_ops.airflow.spark import SPARK, prepare_process

    set_connection(monkeypatch, "local[*]")
    connection = find_airflow_connection(SPARK)
    assert connection is not None
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_000)
    with pytest.raises(InvalidInput) as error:
        prepare_process(connection)
    assert str(error.value) == (
        "Spark does not start on this host, because the user 4000000000 has no name\n"
        "  Add the user to /etc/passwd in the image, or run Spark elsewhere."
    )


@pytest.mark.usefixtures("airflow")
def test_a_cluster_keeps_its_own_settings(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On YARN the job gets the connection's binary, mode, queue and settings, and one of ours.

    A driver inside the cluster does not run this worker's Python.
    """
    extra = {"spark-binary": SUBMIT, "deploy-mode": "cluster", "queue": "etl"}
    own = {"spark.executor.instances": 4, "spark.dynamicAllocation.enabled": False}
    set_connection(monkeypatch, "yarn", **extra, **own, **{QUIET[0]: "true"})

    settings, others, python = submitted(record)

    assert settings == [
        "spark.ui.showConsoleProgress=true",
        "spark.executor.instances=4",
        "spark.dynamicAllocation.enabled=false",
    ]
    assert others == [
        *("--master", "yarn", "--name", "default-name"),
        *("--queue", "etl", "--deploy-mode", "cluster"),
    ]
    assert python == "in "


@pytest.mark.usefixtures("airflow")
def test_our_settings_are_defaults(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this worker a setting of the connection replaces ours of the same name, and only that."""
    own = {"spark.driver.memory": "3g", "spark.eventLog.enabled": True}
    set_connection(monkeypatch, "local[1]", **{"spark-binary": SUBMIT}, **own)

    settings, others, python = submitted(record)

    assert settings == [
        "=".join(QUIET),
        "spark.sql.codegen.cache.maxEntries=1000",
        "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.memory=3g",
        "spark.sql.shuffle.partitions=2",
        "spark.ui.enabled=false",
        "spark.log.level=WARN",
        "spark.eventLog.enabled=true",
    ]
    assert others == ["--master", "local[1]", "--name", "default-name"]
    assert python == f"in {sys.executable}"


@pytest.mark.usefixtures("airflow")
def test_the_connection_on_the_page(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection that the documentation shows gives the job its master and settings."""
    shown = Page(ROOT / "docs" / "reference" / "spark.md").blocks()[0].text
    _, assignment = shlex.split(shown)
    monkeypatch.setenv(*assignment.split("=", 1))

    settings, others, _ = submitted(record)

    assert settings == ["=".join(QUIET), "spark.executor.memory=4g", "spark.executor.instances=2"]
    assert others == ["--master", "spark://spark-master:7077", "--name", "default-name"]


def test_the_token_of_a_server() -> None:
    """Spark gets any login and password of the connection as they are, also with a slash."""
    from airflow.sdk import Connection
    from pyspark.sql.connect.client import DefaultChannelBuilder

    from quota_ops.airflow.spark import build_address

    spark = Connection(conn_id="x", host="h", login="olga@eu/1", password="k3y/+;=%2F")
    address = DefaultChannelBuilder(build_address(spark))
    assert (address.host, address.userId, address.token) == ("h", "olga@eu/1", "k3y/+;=%2F")


def test_a_failed_diff_took_the_time_of_its_job(tmp_path: Path) -> None:
    """A run that Spark did not compare has the time for which the task tried."""
    from quota_ops.airflow.errors import SparkFailed
    from quota_ops.airflow.spark import record_missing_ends

    folder = RunFolder(open_place(tmp_path))

    def try_for_a_while() -> None:
        sleep(0.02)
        raise SparkFailed("the Spark Connect server does not respond")

    with pytest.raises(SparkFailed), record_missing_ends([folder]):
        try_for_a_while()
    end = folder.stage_result("diff")
    assert end.message == "the Spark Connect server does not respond"
    assert end.seconds is not None
    assert end.seconds >= 0.02
