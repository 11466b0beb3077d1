"""The jobs on a real Spark Connect server, and a server that is missing or dies."""

import os
import signal
from pathlib import Path

import pytest

from quota_ops.lab.spark_server import SparkServer, start_spark_server
from quota_ops.model.errors import InvalidInput
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import EngineFailed, diff_runs
from quota_ops.sql.spark import SparkEngine
from quota_ops.sql.spark_connect import ADDRESS, ServerUnreachable, connect
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import CLIENT_COUNTS
from quota_ops.store.run.folder import RunFolder
from tests.engines.runs import put
from tests.engines.test_effects_of_runs import CUT, put_run
from tests.engines.test_spark_submit import put_fleet, said

pytestmark = pytest.mark.matrix


@pytest.fixture(autouse=True)
def _remote(spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the jobs find the server as users do; a dead one fails at once."""
    monkeypatch.setenv(ADDRESS, spark_server.address)
    monkeypatch.setattr("quota_ops.sql.spark_connect._RETRIES", 1)


def test_the_jobs(tmp_path: Path) -> None:
    """Each job of spark_jobs leaves on a server what DuckDB leaves, and the server goes on."""
    from spark_jobs import compare_effective_limits, diff_quotas  # noqa: PLC0415 - pyspark

    before = put_fleet(tmp_path / "embedded")
    diff_runs(EmbeddedEngine(), list(map(open_place, before)))
    fleet = put_fleet(tmp_path / "fleet")
    diff_quotas.main([str(folder) for folder in fleet])
    assert said(fleet) == said(before)
    empty = put(tmp_path / "empty", "one")
    diff_quotas.main([str(empty)])
    assert said([empty]) == [((), [])]

    run = put_run(tmp_path / "effects")
    compare_effective_limits.main([str(run.place)])
    assert run.read(CLIENT_COUNTS).owners == (CUT,)


def test_a_server_that_rejects_or_is_missing(spark_server: SparkServer) -> None:
    """A wrong token, a wrong address, a setting of the server and a dead server are explained."""
    where = f"sc://localhost:{spark_server.port}"
    cases = {
        f"{where}/;token=guess": f"{where} rejected the login: Invalid authentication token",
        "sc://localhost:1": "the Spark Connect server sc://localhost:1 does not respond: failed to "
        "connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
        "Failed to connect to remote host: Connection refused",
        "http://localhost": "http://localhost is not an address of Spark Connect",
        f"{where}/;token=a/guess": f"{where} is not an address of Spark Connect",
        f"{where};token=guess": f"{where} is not an address of Spark Connect",
    }
    for address, message in cases.items():
        with pytest.raises((InvalidInput, ServerUnreachable)) as error, connect(address, {}):
            pass
        assert error.value.message.startswith(message)
        assert "guess" not in str(error.value)
    memory = {"spark.driver.memory": "2g"}
    with pytest.raises(InvalidInput) as error, connect(spark_server.address, memory):
        pass
    assert error.value.message.startswith("a session cannot set spark.driver.memory: ")


def test_a_server_that_dies(tmp_path: Path) -> None:
    """A diff on a killed server fails and leaves no result; started again, it has its address."""
    folder = put_fleet(tmp_path)[0]
    with start_spark_server(tmp_path / "spark") as server:
        server.warm_up()
        assert start_spark_server(tmp_path / "spark") == server
        with connect(server.address, {}) as session:
            os.kill(server.process.pid, signal.SIGKILL)
            with pytest.raises(EngineFailed, match=r"^Spark cannot compare the runs: .*refused"):
                diff_runs(SparkEngine(session), [open_place(folder)])
        assert not RunFolder(open_place(folder)).has("differences.parquet")
        with start_spark_server(tmp_path / "spark") as again:
            assert again.address == server.address
            again.warm_up()
    found = SparkServer.find(tmp_path / "spark")
    assert found is not None
    assert not found.running
