"""Both engines; one Spark session for the whole suite."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quota_ops.sql.embedded import EmbeddedEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quota_ops.sql.spark import SparkEngine


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


@pytest.fixture(scope="session", params=["embedded", "spark"])
def engine(request: pytest.FixtureRequest) -> object:
    """Return each engine in turn."""
    return request.getfixturevalue(request.param)
