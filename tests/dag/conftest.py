"""Fixtures of the DAG tests: Airflow's database, a broker's quotas, repositories."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.dag.embedded import compare_embedded
from tests.dag.repository import ALICE, Quotas, Repository


@pytest.fixture(scope="session")
def airflow() -> None:
    """Airflow's database, migrated; a commit waits for no disk, and no collection reads Airflow."""
    gc.disable()
    from airflow import settings
    from airflow.utils.db import initdb
    from sqlalchemy import event

    @event.listens_for(settings.engine, "connect")
    def _wait_for_no_disk(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    initdb()
    gc.freeze()
    gc.enable()


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
