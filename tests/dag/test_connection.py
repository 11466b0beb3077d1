"""Airflow connections become connections to clusters, and leak no secret."""

import json
import shlex
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from tests.broker_config import password_of
from tests.dag.repository import ALICE, HOME, Quotas, Repository
from tests.dag.test_record_use import MONITORING, USAGE
from tests.docs.markdown import ROOT, Page
from tests.usage.busy_hour import BusyHour
from tests.usage.recording import Answer, Question, serve

LOGIN = {
    "conn_type": "kafka",
    "host": "kafka-1:9094,kafka-2:9094",
    "login": "svc-quota",
    "password": "k3y",
    "extra": {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"},
}


def test_the_fields_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Host, login and password become librdkafka's properties; extra has all others."""
    from quota_ops.airflow.connection import find_connection

    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(LOGIN))
    found = find_connection("demo")
    assert {name: line.value for name, line in found.lines.items()} == {
        "bootstrap.servers": "kafka-1:9094,kafka-2:9094",
        "sasl.username": "svc-quota",
        "sasl.password": "k3y",
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
    }
    assert "k3y" not in repr(found)


def test_the_variables_of_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Airflow reads the connections and the DAG bundle that the page about Airflow exports."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.sdk import BaseHook

    from quota_ops.airflow.connection import find_connection

    blocks = Page(ROOT / "docs" / "how-to" / "airflow.md").blocks()
    exported = [block.text for block in blocks if block.text.startswith("export AIRFLOW_")]
    (tmp_path / "ca.pem").touch()
    for word in shlex.split("".join(exported).replace("/etc/kafka", str(tmp_path))):
        if word != "export":
            monkeypatch.setenv(*word.split("=", 1))

    found = find_connection("demo")
    assert found.properties["bootstrap.servers"] == "kafka-1.example:9094,kafka-2.example:9094"
    assert (found.principal, found.protocol) == ("User:svc-quota", "sasl_ssl")
    assert BaseHook.get_connection("quotas_git").login == "svc-quota"
    bundles: Any = DagBundlesManager
    assert bundles().get_bundle("quotas").tracking_ref == "main"


TOKENS = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
ENDPOINT = {"sasl.oauthbearer.token.endpoint.url": "https://login.example/token"}
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


@pytest.mark.parametrize(
    "extra",
    [{"sasl.oauthbearer.method": "oidc"}, {"sasl.jaas.config": MODULE}],
    ids=["librdkafka", "java"],
)
def test_the_fields_of_an_oauth_client(
    extra: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With OAUTHBEARER, login and password are the client's id and secret."""
    from quota_ops.airflow.connection import find_connection

    conn = LOGIN | {"extra": TOKENS | ENDPOINT | extra}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    found = {name: line.value for name, line in find_connection("demo").lines.items()}
    assert found == ENDPOINT | {
        "bootstrap.servers": "kafka-1:9094,kafka-2:9094",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "svc-quota",
        "sasl.oauthbearer.client.secret": "k3y",
    }


def test_what_airflow_shows_of_a_connection() -> None:
    """It masks each setting whose value is a secret, but for those that the page warns of."""
    from airflow.api_fastapi.core_api.datamodels.connections import ConnectionResponse

    names = {f"ssl.{key}" for key in ("key.pem", "keystore.key", "key.password")}
    names |= {f"sasl.{key}" for key in ("jaas.config", "password", "oauthbearer.client.secret")}
    fields = dict.fromkeys(ConnectionResponse.model_fields)
    values = {
        "connection_id": "x",
        "conn_type": "kafka",
        "extra": json.dumps({}.fromkeys(names, "k3y")),
    }
    shown = json.loads(str(ConnectionResponse.model_validate(fields | values).extra))
    assert {name for name, value in shown.items() if value == "k3y"} == {
        "ssl.key.pem",
        "ssl.keystore.key",
        "sasl.jaas.config",
    }


def test_javas_names_in_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """`extra` accepts the property names of Kafka's Java clients, including the login."""
    from quota_ops.airflow.connection import find_connection

    login = 'a.ScramLoginModule required username="svc-quota" password="k\\"3y";'
    pem = "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----"
    conn = {"conn_type": "kafka", "host": "kafka-1", "port": 9094} | {
        "extra": {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": login,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": pem,
        }
    }
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    assert {name: line.value for name, line in find_connection("demo").lines.items()} == {
        "bootstrap.servers": "kafka-1:9094",
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "svc-quota",
        "sasl.password": 'k"3y',
        "ssl.ca.pem": pem,
    }


@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address_keeps_its_port(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow removes the brackets of an IPv6 address in a URI; quota-ops restores them."""
    from quota_ops.airflow.connection import find_connection

    conn = {"conn_type": "kafka", "host": host, "port": 9094}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    assert find_connection("demo").lines["bootstrap.servers"].value == "[::1]:9094"


def test_one_port_for_several_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The port is that of each host that names none."""
    from quota_ops.airflow.connection import find_connection

    conn = {"conn_type": "quota_ops", "host": "kafka-1, kafka-2:9095,[::1]", "port": 9094}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    servers = find_connection("demo").lines["bootstrap.servers"].value
    assert servers == "kafka-1:9094,kafka-2:9095,[::1]:9094"


def test_a_host_that_names_its_protocol_and_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with protocol and port, as service consoles print it, is no IPv6 address."""
    from quota_ops.airflow.connection import find_connection

    host = "SASL_PLAINTEXT://pkc-1.example.com:9092"
    conn = LOGIN | {"host": host, "port": None}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    assert find_connection("demo").lines["bootstrap.servers"].value == host


def test_a_mistake_in_a_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the Airflow connection and shows none of its secrets."""
    from quota_ops.airflow.connection import find_connection

    conn = LOGIN | {"extra": {"sasl.mechanism": "PLAIN", "sasl.password": "k3y", "typo": 1}}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    with pytest.raises(InvalidInput, match="the Airflow connection quota_ops_demo") as error:
        find_connection("demo")
    assert "k3y" not in str(error.value)


@pytest.mark.parametrize("text", ["kafka://svc:k3y@kafka-1:9092,kafka-2:9092", '{"host": "k3y",}'])
def test_a_variable_that_airflow_cannot_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error: for Airflow it is not defined, so a file on the worker would be used."""
    from quota_ops.airflow.connection import find_connection

    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", text)
    with pytest.raises(InvalidInput) as error:
        find_connection("demo")
    assert str(error.value) == (
        "AIRFLOW_CONN_QUOTA_OPS_DEMO is neither the JSON nor the URI of a connection\n"
        "  Write it as JSON. A URI cannot list several hosts."
    )


@pytest.mark.parametrize("extra", ['{"security.protocol": "ssl",}', '["ssl"]', '"k3y"', "k3y"])
def test_an_extra_that_is_no_object(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is not used without the settings in it, such as its protocol."""
    from quota_ops.airflow.connection import find_connection

    conn = {"conn_type": "kafka", "host": "kafka-1", "port": 9094, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(conn))
    with pytest.raises(InvalidInput) as error:
        find_connection("demo")
    assert error.value.message == (
        "the extra of the Airflow connection quota_ops_demo is not a JSON object"
    )


def test_a_prometheus_gets_no_credentials_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to a cluster is never one to a Prometheus, nor the other way round."""
    from quota_ops.airflow.connection import find_connection, find_prometheus

    monitoring = {"conn_type": "quota_ops_prometheus", "host": "prometheus", "login": "reader"} | {
        "password": "k3y",
        "port": 9090,
        "extra": {"bearer.token": ""},
    }
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_DEMO", json.dumps(LOGIN))
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_MONITORING", json.dumps(monitoring))
    found = find_prometheus("monitoring")
    assert (found.url, found.login) == ("https://prometheus:9090", ("reader", "k3y"))
    assert "k3y" not in repr(found)
    with pytest.raises(InvalidInput, match="quota_ops_demo has the type kafka, not") as error:
        find_prometheus("demo")
    assert "k3y" not in str(error.value)
    with pytest.raises(InvalidInput, match="quota_ops_monitoring leads to a Prometheus"):
        find_connection("monitoring")
    monkeypatch.setenv(
        "AIRFLOW_CONN_QUOTA_OPS_MONITORING", json.dumps(monitoring | {"schema": "http"})
    )
    with pytest.raises(InvalidInput, match="must begin with https://, because a secret"):
        find_prometheus("monitoring")
    with pytest.raises(InvalidInput) as error:
        find_prometheus("prod")
    assert "the Airflow connection quota_ops_prod  not defined" in str(error.value)


def test_without_one_the_files_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an Airflow connection of that name, the command line's connection file is used."""
    from quota_ops.airflow.connection import find_connection

    file = tmp_path / "demo.properties"
    file.write_text("bootstrap.servers=kafka-1:9094\n")
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_DEMO", str(file))
    assert find_connection("demo").source == str(file)


def test_without_any_the_places_of_a_task_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error about a missing connection lists the Airflow connection first, not --connection."""
    from quota_ops.airflow.connection import find_connection

    monkeypatch.setenv("QUOTA_OPS_CONNECTIONS", str(tmp_path))
    with pytest.raises(InvalidInput) as error:
        find_connection("prod")
    assert str(error.value).startswith(
        f"""\
there is no connection prod. Searched:
    the Airflow connection quota_ops_prod  not defined or readable
    $QUOTA_OPS_CONNECTION_PROD  not set
    {tmp_path}/prod.properties  does not exist
  Define the Airflow connection quota_ops_prod, or write that file, for example:
    bootstrap.servers="""
    )


@pytest.mark.usefixtures("embedded")
def test_no_secret_is_left(
    repository: Repository,
    secured_broker: RunningBroker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """After a run the passwords are in no artifact, no log, and not in Airflow's database.

    The plan finds its Prometheus by another Airflow connection, without a file on the worker.
    """
    host, port = secured_broker.bootstrap("SASL").split(":")
    password = password_of("admin")
    conn = LOGIN | {"host": host, "port": int(port), "login": "admin", "password": password}
    monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_SECURED", json.dumps(conn))
    repository.cluster("secured", cluster_id=secured_broker.config.cluster_id, payments=ALICE)
    repository.add_policy("secured", USAGE.format("monitoring"))
    # Brokers count use only while a quota is stored: otherwise no plan would query it.
    Quotas(secured_broker).set({"user=bob producer_byte_rate": 1_000_000})
    busy, sent = BusyHour(datetime.now(UTC).timestamp()), set()

    def respond(asked: Question, headers: Mapping[str, str]) -> Answer:
        sent.add(headers.get("Authorization"))
        return busy.respond(asked, headers)

    with serve(respond) as url:
        conn = MONITORING | {"port": int(url.rpartition(":")[2]), "password": "pr0m3th3us"}
        monkeypatch.setenv("AIRFLOW_CONN_QUOTA_OPS_MONITORING", json.dumps(conn))
        assert repository.run("reconcile_secured").state == "success"
    (throttling,) = repository.store.rglob("throttling.json")
    found = json.loads(throttling.read_text())
    assert sent == {f"Basic {b64encode(b'reader:pr0m3th3us').decode()}"}
    why = "no use of user=alice was recorded in the last 7 days"
    assert found["trouble"] is None
    assert [(cut["entity"], cut["why"]) for cut in found["cuts"]] == [("user=alice", why)]
    Quotas(secured_broker).set(
        {f"user={name} producer_byte_rate": None for name in ("alice", "bob")}
    )
    written = [
        file for folder in (HOME, repository.store) for file in folder.rglob("*") if file.is_file()
    ]
    assert len(written) > 10
    secrets, printed = (password, "pr0m3th3us"), capfd.readouterr().out
    assert not [file for file in written if any(s.encode() in file.read_bytes() for s in secrets)]
    assert not [secret for secret in secrets if secret in printed]
