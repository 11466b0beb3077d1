"""Fixtures of the DAG tests: Airflow's database, a broker's quotas, repositories."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.dag.embedded import compare_embedded
from tests.dag.repository import ALICE, Quotas, Repository


@pytest.fixture(scope="session")
def airflow() -> None:
    """Airflow's database, migrated."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def repository(airflow: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository without clusters."""
    del airflow
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    return Repository(tmp_path)


@pytest.fixture
def quotas(broker: RunningBroker) -> Iterator[Quotas]:
    """Yield the quotas of the shared broker, which has none before and after the test."""
    quotas = Quotas(broker)
    yield quotas
    quotas.clear()


@pytest.fixture
def demo(
    repository: Repository, broker: RunningBroker, quotas: Quotas, monkeypatch: pytest.MonkeyPatch
) -> Repository:
    """A repository with one quota for the shared broker, and the Airflow connection to it."""
    del quotas
    host, port = broker.bootstrap().split(":")
    conn = json.dumps({"conn_type": "kafka", "host": host, "port": int(port)})
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", conn)
    repository.cluster("demo", cluster_id=broker.config.cluster_id, payments=ALICE)
    return repository


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the diff on DuckDB, in tests about other tasks."""
    compare_embedded(monkeypatch)
