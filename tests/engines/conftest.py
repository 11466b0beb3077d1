"""Both engines; one Spark session for the whole suite."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quota_ops.sql.embedded import EmbeddedEngine
from tests.engines.runs import decide_clusters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quota_ops.lab.spark_server import SparkServer
    from quota_ops.model.quotas.difference import Difference
    from quota_ops.sql.spark import SparkEngine
    from tests.engines.runs import AnyEngine


@pytest.fixture(scope="session")
def embedded() -> EmbeddedEngine:
    """Return DuckDB in this process."""
    return EmbeddedEngine()


@pytest.fixture(scope="session")
def session() -> "Iterator[SparkSession]":
    """Start Spark in this process, as `--engine spark` does."""
    from quota_ops.sql.spark import local_session  # noqa: PLC0415 - a JVM

    with local_session([]) as running:
        yield running


@pytest.fixture(scope="session")
def spark(session: "SparkSession") -> "SparkEngine":
    """Return Spark in this process."""
    from quota_ops.sql.spark import SparkEngine  # noqa: PLC0415 - a JVM

    return SparkEngine(session)


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkServer]":
    """Start a Spark Connect server, which all tests share."""
    from quota_ops.lab.spark_server import start_spark_server  # noqa: PLC0415 - pyspark

    with start_spark_server(tmp_path_factory.mktemp("spark")) as server:
        server.warm_up()
        yield server


@pytest.fixture(scope="session")
def connected(spark_server: "SparkServer") -> "Iterator[SparkSession]":
    """Open a session on the Spark Connect server."""
    from quota_ops.sql.spark_connect import connect  # noqa: PLC0415 - pyspark

    with connect(spark_server.address, {}) as running:
        yield running


@pytest.fixture(scope="session")
def connect(connected: "SparkSession") -> "SparkEngine":
    """Return Spark by Spark Connect."""
    from quota_ops.sql.spark import SparkEngine  # noqa: PLC0415 - a JVM

    return SparkEngine(connected)


@pytest.fixture(
    scope="session", params=["embedded", "spark", pytest.param("connect", marks=pytest.mark.matrix)]
)
def engine(request: pytest.FixtureRequest) -> object:
    """Return each engine in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def decided(
    engine: "AnyEngine", tmp_path_factory: pytest.TempPathFactory
) -> "dict[str, list[Difference]]":
    """Return the differences of the clusters of several tests, found by one job.

    A job takes Spark 5 to 30 seconds of CPU, whatever it compares.
    """
    from tests.engines import (  # noqa: PLC0415 - pytest rewrites the assertions of tests
        test_arrived,
        test_batches,
        test_diff,
        test_every_combination,
        test_properties,
    )

    modules = (test_arrived, test_batches, test_diff, test_every_combination, test_properties)
    clusters = {name: sides for tests in modules for name, sides in tests.list_clusters().items()}
    return decide_clusters(engine, tmp_path_factory.mktemp("decided"), clusters)
