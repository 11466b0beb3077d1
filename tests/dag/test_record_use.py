"""The DAG that keeps what clients used each day."""

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quota_ops.store.history.digests import list_days
from quota_ops.store.places.run_store import RunStore, open_place
from tests.dag.repository import ALICE, Repository
from tests.usage.busy_hour import BusyHour
from tests.usage.recording import Answer, Question, serve

IDS = {"demo": "AAAAAAAAAAAAAAAAAAAAAA", "second": "BBBBBBBBBBBBBBBBBBBBBB"}
MONITORING = {
    "conn_type": "quota_ops_prometheus",
    "schema": "http",
    "host": "127.0.0.1",
    "login": "reader",
    "password": "k3y",
    "extra": {"tenant": "kafka", "tenant.header": "THANOS-TENANT"},
}
USAGE = "usage: {{prometheus: {}, match: {{cluster: demo}}}}"


def test_the_days_of_each_measured_cluster_are_stored(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One Prometheus that does not respond costs its cluster, and the run fails and names it.

    An Airflow connection has the address and the credentials, or else a file on the worker.
    Without `usage` in any cluster.yaml, there is no such DAG.
    """
    for name, cluster_id in IDS.items():
        repository.cluster(name, cluster_id=cluster_id, payments=ALICE)
    assert "record_use" not in repository.dags()
    repository.add_policy("demo", USAGE.format("monitoring"))
    repository.add_policy("second", USAGE.format("away"))
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_AWAY", str(tmp_path / "away"))
    (tmp_path / "away").write_text("url=http://127.0.0.1:1\n")
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    busy = BusyHour((noon - timedelta(days=2)).timestamp(), (noon - timedelta(days=3)).timestamp())

    sent = set()

    def respond(asked: Question, headers: Mapping[str, str]) -> Answer:
        sent.add((headers.get("Authorization"), headers.get("THANOS-TENANT")))
        return busy.respond(asked, headers)

    with serve(respond) as url:
        conn = MONITORING | {"port": int(url.rpartition(":")[2])}
        monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_MONITORING", json.dumps(conn))
        run = repository.run("record_use")

    assert (run.state, run.tasks) == ("failed", {"record": "failed"})
    assert repository.told.read_text() == "failed record_use: the use of second is unknown \n"
    store = RunStore(open_place(repository.store))
    assert f"{noon - timedelta(days=2):%Y-%m-%d}" in list_days(store, IDS["demo"])
    assert list_days(store, IDS["second"]) == []
    assert sent == {(f"Basic {b64encode(b'reader:k3y').decode()}", "kafka")}
