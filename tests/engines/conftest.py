"""Both engines; one Spark session for the whole suite."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from quota_ops.sql.embedded import EmbeddedEngine

if TYPE_CHECKING:
    from quota_ops.sql.spark import SparkEngine


@pytest.fixture(scope="session")
def embedded() -> EmbeddedEngine:
    """DuckDB in this process."""
    return EmbeddedEngine()


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkEngine]":
    """Spark in this process, as `--engine spark` starts it."""
    from quota_ops.sql.spark import SparkEngine, local_session  # noqa: PLC0415 - a JVM

    with local_session([]) as session:
        yield SparkEngine(session)


@pytest.fixture(scope="session", params=["embedded", "spark"])
def engine(request: pytest.FixtureRequest) -> object:
    """Each engine in turn."""
    return request.getfixturevalue(request.param)
