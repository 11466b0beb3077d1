"""The provider entry point: the connection type `quota_ops`, its form, and its button Test."""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from quota_ops.kafka.connection.settings import SETTINGS
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.provider import get_provider_info
from quota_ops.usage.connection import SETTINGS as PROMETHEUS_SETTINGS
from tests.broker.rights import rights
from tests.broker_config import password_of
from tests.usage.recording import Answer, Question, serve

# Airflow's API calls what its next version will drop.
pytestmark = pytest.mark.filterwarnings("ignore:ProvidersManager.hooks is deprecated")
CONNECTION = "quota_ops"
LIGHT = """
import sys
from quota_ops.provider import get_provider_info
get_provider_info()
print([name for name in sys.modules if name.partition(".")[0] in ("airflow", "kafka", "pyarrow")])
print([name for name in sys.modules if name.startswith("quota_ops.")])
"""


def test_airflow_shows_the_form_of_a_connection() -> None:
    """Airflow finds the connection type by the entry point, with the fields of its form."""
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

    (form,) = [one for one in HookMetaService.hook_meta_data() if one.connection_type == CONNECTION]
    assert form.hook_name == "quota-ops (Kafka cluster)"
    standard: Any = form.standard_fields
    assert standard.host.title == "Bootstrap servers"
    assert (standard.port.hidden, standard.url_schema.hidden) == (False, True)
    assert form.extra_fields
    assert list(form.extra_fields) == [*get_provider_info()["connection-types"][0]["conn-fields"]]


def test_the_fields_are_settings() -> None:
    """Each field of the forms is a setting of a connection, with the same choices."""
    form, other = get_provider_info()["connection-types"]
    assert {*other["conn-fields"]} <= {*PROMETHEUS_SETTINGS}
    for name, field in form["conn-fields"].items():
        choices = tuple(one for one in field["schema"].get("enum", ()) if one is not None)
        assert choices == SETTINGS[name].choices


def test_the_entry_point_imports_nothing() -> None:
    """Airflow calls the entry point in every process; it imports no library and no quota-ops."""
    run = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["[]", "['quota_ops.provider']"]


def press_test(
    monkeypatch: pytest.MonkeyPatch, *, conn_type: str = CONNECTION, **fields: Any
) -> tuple[bool, str]:
    """Test a connection as Airflow's API does: by its URI, under a random name."""
    from airflow.models import Connection

    conn = Connection(  # noqa: AIR311 - as Airflow's API does
        conn_id="random", conn_type=conn_type, **fields
    )
    monkeypatch.setitem(os.environ, "AIRFLOW_CONN_RANDOM", conn.get_uri())
    found, message = conn.test_connection()  # type: ignore[no-untyped-call]
    return found, message


def test_the_button_test(
    broker: RunningBroker, secured_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says which cluster responds and what quota-ops is authorized to do, or what is wrong."""
    address, cluster = broker.bootstrap(), broker.config.cluster_id
    works = (
        f"Connected to cluster {cluster} as User:ANONYMOUS. 1 of 1 broker responds. Authorized to "
        "describe quotas and alter quotas."
    )
    host, port = address.split(":")
    assert press_test(monkeypatch, host=f"{host},{address}", port=int(port)) == (True, works)
    login = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}
    reader: dict[str, Any] = {
        "host": secured_broker.bootstrap("SASL"),
        "login": "reader",
        "extra": login,
    }
    with rights(secured_broker):
        ok, message = press_test(monkeypatch, **reader, password=password_of("reader"))
    assert not ok
    assert message.startswith(
        f"Connected to cluster {secured_broker.config.cluster_id} as User:reader. 1 of 1 broker "
        "responds. Authorized to describe quotas. Not authorized to alter quotas: it needs "
        "AlterConfigs on the resource Cluster. An administrator grants it with: kafka-acls.sh "
    )
    ok, message = press_test(monkeypatch, **reader, password="wr0ng")
    assert not ok
    assert "wr0ng" not in message
    assert message.startswith("connection of this form: the broker at ")
    assert "Authentication failed" in message


def test_the_button_test_of_a_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many targets the server scrapes, or why it does not respond as it should."""
    found = '{"status": "success", "data": {"result": [{"metric": {}, "value": [1, "3"]}]}}'
    monitoring: dict[str, Any] = {
        "conn_type": "quota_ops_prometheus",
        "schema": "http",
        "host": "127.0.0.1",
    }
    extra = {"bearer.token": "k3y", "tenant": "kafka"}

    def respond(_asked: Question, headers: Mapping[str, str]) -> Answer:
        is_known = headers.get("Authorization") == "Bearer k3y"
        return Answer(200, found) if is_known else Answer(401, "Unauthorized")

    with serve(respond) as url:
        port = int(url.rpartition(":")[2])
        assert press_test(monkeypatch, **monitoring, port=port, extra=extra) == (
            True,
            "The server responds, and scrapes 3 targets.",
        )
        ok, message = press_test(monkeypatch, **monitoring, port=port, login="a", password="wr0ng")
    assert not ok
    assert "Check basic.password (this connection)" in message
    assert "wr0ng" not in message


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no broker": ({"host": "127.0.0.1:1"}, "no broker at 127.0.0.1:1"),
    "no host": ({}, "bootstrap.servers"),
    "no effect": ({"host": "127.0.0.1:1", "login": "svc", "password": "k3y"}, "sasl.username"),
    "unknown": (
        {"host": "127.0.0.1:1", "extra": {"ssl.ca.locaton": ["k3y"]}},
        "Did you mean ssl.ca.location?",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_connection_that_does_not_work(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the mistake, and shows no secret."""
    fields, words = MISTAKES[case]
    ok, message = press_test(monkeypatch, **fields)
    assert not ok
    assert words in message
    assert "k3y" not in message
