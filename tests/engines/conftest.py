"""Both engines; one Spark session for the whole suite."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quota_ops.sql.embedded import EmbeddedEngine

if TYPE_CHECKING:
    from quota_ops.sql.spark import SparkEngine


@pytest.fixture(scope="session")
def embedded() -> EmbeddedEngine:
    """Return DuckDB in this process."""
    return EmbeddedEngine()


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkEngine]":
    """Start Spark in this process, as `--engine spark` does."""
    from quota_ops.sql.spark import SparkEngine, local_session  # noqa: PLC0415 - a JVM

    with local_session([]) as session:
        yield SparkEngine(session)


@pytest.fixture(scope="session", params=["embedded", "spark"])
def engine(request: pytest.FixtureRequest) -> object:
    """Return each engine in turn."""
    return request.getfixturevalue(request.param)
