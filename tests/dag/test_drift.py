"""The drift DAG on real brokers reports every cluster and writes to none."""

import json
import shutil
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.history.history import HISTORY
from quota_ops.model.plans.ledger_edits import VERIFIED, adopt
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.runs.stages import StageStatus
from quota_ops.sql.history import read_history
from quota_ops.sql.spark_archive import find_spark
from quota_ops.store.history.history import append
from quota_ops.store.ledger.ledger import change
from quota_ops.store.places.parquet import from_rows
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import FACTS
from quota_ops.store.run.names import NamedCluster
from tests.broker.rights import rights
from tests.broker_config import password_of
from tests.dag.asset_events import list_events
from tests.dag.recording import SUBMIT, record_command, set_connection, set_server
from tests.dag.repository import ALICE, DagRun, Quotas, Repository
from tests.engines.five_days import end
from tests.places import on_disk

KEY = "producer_byte_rate"


def overview(run: DagRun) -> str:
    """Return the text of the overview of all clusters; check that its pages exist."""
    (folder,) = (run.store / "fleet").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == [
        "report.html",
        "report.txt",
        "run.json",
    ]
    return (folder / "report.txt").read_text()


def connect(
    monkeypatch: pytest.MonkeyPatch, name: str, host: str, port: int, **login: object
) -> None:
    """Define an Airflow connection to a broker, without credentials by default."""
    conn = json.dumps({"conn_type": "kafka", "host": host, "port": port, **login})
    monkeypatch.setenv(f"AIRFLOW_CONN_QUOTA_OPS_{name.upper()}", conn)


def test_some_clusters_cannot_be_looked_at(
    demo: Repository,
    quotas: Quotas,
    secured_broker: RunningBroker,
    *,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """One Spark job compares all reachable clusters; the others are reported, and the run fails.

    The Spark Connect server is dead, and the log shows which connection is used instead: the job
    runs by its binary and with its settings. The reports compact the days before.
    """
    demo.store.mkdir(parents=True, exist_ok=True)
    ended = from_rows(HISTORY, end("2026-11-01T10:00:00Z", drifts=True))
    append(RunStore(open_place(demo.store)), ended)
    submit = find_spark() / "bin" / "spark-submit"
    command = record_command(tmp_path, monkeypatch, then=str(submit))
    own = {"spark.sql.shuffle.partitions": 1, "deploy-mode": "client"}
    set_connection(monkeypatch, "local[2]", **{"spark-binary": SUBMIT}, **own)
    caplog.set_level("INFO", "quota_ops.airflow.spark")
    set_server(monkeypatch, port=1, extra={"fallback": "cold"})
    quotas.set({"user=alice producer_byte_rate": 7, "user=mallory producer_byte_rate": 9})
    host, port = secured_broker.bootstrap().split(":")
    connect(monkeypatch, "second", host, int(port))
    demo.cluster("second", cluster_id=secured_broker.config.cluster_id, payments=ALICE)
    connect(monkeypatch, "gone", "127.0.0.1", 1)
    demo.cluster("gone", cluster_id="AAAAAAAAAAAAAAAAAAAAAA", payments=ALICE)
    demo.cluster("broken", cluster_id="BBBBBBBBBBBBBBBBBBBBBB", payments="owner: payments\n")
    stored = quotas.stored()

    run = demo.run("drift")

    assert run.state == "failed"
    assert run.tasks == {
        "describe": "failed",
        "diff": "success",
        "report": "success",
        "overview": "failed",
    }
    assert run.tries["describe"] == 4
    # A retry leaves a cluster alone that was described before.
    assert run.folder().place.folders() == ()
    text = overview(run)
    assert "gone" in text
    assert "no broker at 127.0.0.1:1" in text
    assert "broken" in text
    assert "payments.yaml" in text
    ends = {name: run.folder(name).stage_result("diff").status for name in ("demo", "second")}
    assert ends == {"demo": StageStatus.DONE, "second": StageStatus.DONE}
    assert all(run.folder(name).has("report.html") for name in ("demo", "second", "gone", "broken"))
    assert quotas.stored() == stored
    assert not (demo.store / "ledger").exists()
    assert (demo.store / "history" / "date=2026-11-01" / "day-0001.parquet").exists()
    found = read_history(RunStore(open_place(demo.store)), NamedCluster(("demo",)))
    assert (found.quotas[0].drifts, len(found.days), found.troubles) == (1, 2, ())
    assert "spark.sql.shuffle.partitions=1" in command.read_text().splitlines()
    messages = [
        record.getMessage() for record in caplog.records if record.name == "quota_ops.airflow.spark"
    ]
    kinds = "1 pending, 1 takeover, 1 unmanaged"
    assert [message.partition(": failed to connect")[0] for message in messages] == [
        "the Spark Connect server sc://localhost:1 does not respond",
        "the job runs by spark-submit instead, with the connection cold",
        f"2 clusters compared, 3 differences ({kinds}): demo 2, second 1.",
    ]


@pytest.mark.usefixtures("embedded")
def test_drift_alone_leaves_the_run_green(demo: Repository, quotas: Quotas) -> None:
    """The report has the guard that would block a reconcile; the run succeeds.

    A value that quota-ops did not set before is no drift, so it is no event of an asset either.
    """
    quotas.set({"user=alice producer_byte_rate": 7})
    run = demo.run("drift")
    assert run.state == "success"
    assert set(run.tasks.values()) == {"success"}
    assert run.folder().stage_result("plan").status is StageStatus.REFUSED
    assert run.folder().stage_result("apply").status is StageStatus.NOT_RUN
    assert "takeover" in (on_disk(run.folder()) / "report.txt").read_text()
    assert list_events(demo) == []
    assert quotas.stored() == {"user=alice producer_byte_rate": 7.0}


def test_no_cluster_answers(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no cluster can be described, Spark is skipped; the overview shows why, and fails."""
    connect(monkeypatch, "gone", "127.0.0.1", 1)
    repository.cluster("gone", cluster_id="AAAAAAAAAAAAAAAAAAAAAA", payments=ALICE)
    run = repository.run("drift")
    assert run.state == "failed"
    assert run.tasks == {
        "describe": "failed",
        "diff": "skipped",
        "report": "success",
        "overview": "failed",
    }
    assert "no broker at 127.0.0.1:1" in overview(run)


@pytest.mark.usefixtures("embedded")
def test_who_may_only_describe_reports_drift(
    repository: Repository, secured_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DescribeConfigs on the cluster is enough; facts that need more are left out."""
    host, port = secured_broker.bootstrap("SASL").split(":")
    password = password_of("reader")
    login = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}
    connect(monkeypatch, "orders", host, int(port), login="reader", password=password, extra=login)
    cluster_id = secured_broker.config.cluster_id
    repository.cluster("orders", cluster_id=cluster_id, payments=ALICE.replace("1000", "1 MiB"))
    verified = LedgerRow(
        cluster_id, "user=alice", KEY, 2.0**20, VERIFIED, *("payments", "", "", "", "")
    )
    change(
        RunStore(open_place(repository.store)).of_cluster(cluster_id),
        lambda rows: adopt(rows, [verified]),
    )
    quotas = Quotas(secured_broker)

    with rights(secured_broker):
        quotas.set({f"user=alice {KEY}": 2**21})
        run = repository.run("drift")
        quotas.set({f"user=alice {KEY}": None})

    assert (run.state, set(run.tasks.values())) == ("success", {"success"})
    folder = run.folder("orders")
    report = json.loads((on_disk(folder) / "report.json").read_text())
    assert report["answer"]["sentence"].startswith("1 quota on orders was changed outside Git")
    assert (report["warnings"], [one["code"] for one in report["findings"]]) == ([], ["QO204"])
    assert {one["stage"]: one["status"] for one in report["stages"]} == {
        **dict.fromkeys(("check", "describe", "diff", "plan"), "done"),
        **dict.fromkeys(("validate", "apply", "verify"), "not run"),
    }
    facts = folder.find(FACTS)
    assert facts is not None
    assert (facts.scram_users, facts.acl_principals) == (None, None)
    assert [broker.io_threads for broker in facts.brokers] == [8]


@pytest.mark.usefixtures("embedded")
def test_two_folders_of_one_cluster(
    demo: Repository, secured_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders with one cluster id cost only these two their comparison, and each is named."""
    host, port = secured_broker.bootstrap().split(":")
    connect(monkeypatch, "orders", host, int(port))
    demo.cluster("orders", cluster_id=secured_broker.config.cluster_id, payments=ALICE)
    first = demo.root / "desired_state" / "demo"
    shutil.copytree(first, first.parent / "copy")

    run = demo.run("drift")

    ends = {name: run.folder(name).stage_result("check") for name in ("demo", "copy", "orders")}
    assert run.folder("orders").stage_result("diff").status is StageStatus.DONE
    assert {ends[name].status for name in ("demo", "copy")} == {StageStatus.FAILED}
    text = overview(run)
    assert text.startswith("3 clusters: 2 are unknown, 1 is pending.")
    assert text.count(f"{demo.root}/desired_state/demo/cluster.yaml") == 2
    assert (run.state, run.tasks["report"], run.tasks["overview"]) == (
        "failed",
        "success",
        "failed",
    )
