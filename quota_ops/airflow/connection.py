"""Airflow connections to clusters and Prometheus, read in the task so that no secret leaves it."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from ipaddress import IPv6Address
from typing import Any, TypeVar

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from quota_ops.kafka import connection as kafka
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.text import counted
from quota_ops.usage import connection as prometheus
from quota_ops.usage.connection import PrometheusConnection

PREFIX = "quota_ops_"
PROMETHEUS = "quota_ops_prometheus"
"""The type of a connection to a Prometheus: no other is used as one, nor it for a cluster."""
_LOGIN_FIELDS = {
    "OAUTHBEARER": (
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
    )
}
"""The properties for login and password, by names that librdkafka and Java clients share."""
Settings = TypeVar("Settings")
_PORT = re.compile(r":\d+$")


def find_connection(name: str) -> kafka.Connection:
    """Return the Airflow connection quota_ops_NAME, or else the connection of the command line.

    Raises InvalidInput if it is not a connection to a cluster.
    """
    return _find(name, read_connection, kafka.find_connection)


def read_connection(found: Connection, *, name: str, source: str) -> kafka.Connection:
    """Return an Airflow connection of any type as a connection to a cluster.

    Host and port become bootstrap.servers: the host may list several brokers, and the port applies
    to each that has none. Login and password are for SASL, or with OAUTHBEARER the id and the
    secret of the OAuth client. Extra is a JSON object of any settings of a connection file, which
    override the fields. Raises InvalidInput if it is not a connection to a cluster.
    """
    if found.conn_type == PROMETHEUS:
        raise InvalidInput(
            f"{source} leads to a Prometheus, not to a cluster",
            "Define the connection to the cluster under another name.",
        )
    settings = dict(_list_settings(_list_properties(found), found))
    return kafka.Connection.of(settings, name=name, source=source)


def find_prometheus(name: str) -> prometheus.PrometheusConnection:
    """Return the Airflow connection quota_ops_NAME, or else the connection of the command line.

    Raises InvalidInput if it is not a connection to a Prometheus.
    """
    return _find(name, read_prometheus, prometheus.find_prometheus)


def read_prometheus(
    found: Connection, *, name: str, source: str
) -> prometheus.PrometheusConnection:
    """Return an Airflow connection of the type quota_ops_prometheus.

    Schema (https by default), host and port become the url; login and password are for HTTP Basic
    authentication. Extra is a JSON object of any settings of a connection file, which override
    the fields. Raises InvalidInput for another type, and for a setting that is wrong.
    """
    if found.conn_type != PROMETHEUS:
        raise InvalidInput(
            f"{source} has the type {found.conn_type}, not {PROMETHEUS}",
            "A Prometheus never gets the credentials of a connection of another type: define one of"
            f" the type {PROMETHEUS}, under another name.",
        )
    fields = {
        "url": f"{found.schema or 'https'}://{_join_address(found.host or '', found.port)}",
        "basic.username": found.login,
        "basic.password": found.password,
    }
    settings = dict(_list_settings(fields, found))
    return prometheus.PrometheusConnection.of(settings, name=name, source=source)


def _find(
    name: str, read: Callable[..., Settings], find_elsewhere: Callable[..., Settings]
) -> Settings:
    source = f"the Airflow connection {PREFIX}{name}"
    found = find_airflow_connection(PREFIX + name)
    if found is None:
        return find_elsewhere(name, before=source)
    return read(found, name=name, source=source)


def find_airflow_connection(conn_id: str) -> Connection | None:
    """Return an Airflow connection; None if it is not defined.

    Raises InvalidInput if its variable cannot be read, which Airflow treats as not defined, or its
    extra is no JSON object: Airflow would use it without these settings.
    """
    try:
        found = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if (variable := f"AIRFLOW_CONN_{conn_id.upper()}") in os.environ:
            raise InvalidInput(
                f"{variable} is neither the JSON nor the URI of a connection",
                "Write it as JSON. A URI cannot list several hosts.",
            ) from None
        return None
    with suppress(ValueError):
        if isinstance(json.loads(found.extra or "{}"), dict):
            return found
    raise InvalidInput(
        f"the extra of the Airflow connection {conn_id} is not a JSON object",
        'Write it as JSON, for example {"security.protocol": "ssl"}, without a comma at its end.',
    )


def _list_properties(found: Connection) -> dict[str, str | None]:
    extra: dict[str, Any] = found.extra_dejson
    mechanism = str(extra.get("sasl.mechanism") or extra.get("sasl.mechanisms")).upper()
    login, password = _LOGIN_FIELDS.get(mechanism, ("sasl.username", "sasl.password"))
    fields = {
        "bootstrap.servers": _join_address(found.host or "", found.port),
        login: found.login,
        password: found.password,
    }
    if found.conn_type == "quota_ops" and mechanism == "OAUTHBEARER":  # its form has no method
        fields["sasl.oauthbearer.method"] = "oidc"
    return fields


def _list_settings(
    fields: Mapping[str, str | None], found: Connection
) -> Iterator[tuple[str, str]]:
    for key, value in {**fields, **found.extra_dejson}.items():
        if value not in (None, ""):
            yield key, value if isinstance(value, str) else json.dumps(value)


def _join_address(hosts: str, port: int | None) -> str:
    """Return bootstrap.servers: the port applies to each host without one."""
    return ",".join(_add_port(host.strip(), port) for host in hosts.split(","))


def _add_port(host: str, port: int | None) -> str:
    with suppress(ValueError):  # Airflow removes the brackets of an IPv6 address in a URI
        host = f"[{IPv6Address(host)}]"
    return f"{host}:{port}" if host and port and not _PORT.search(host) else host


class QuotaOpsHook(BaseHook):
    """A Kafka cluster whose quotas are managed; tasks read the same connection without it."""

    conn_name_attr = "quota_ops_conn_id"
    default_conn_name = "quota_ops_default"
    conn_type = "quota_ops"
    hook_name = "quota-ops (Kafka cluster)"

    def __init__(self, quota_ops_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.quota_ops_conn_id = quota_ops_conn_id

    def get_conn(self) -> kafka.Connection:
        """Return the settings of the connection. Raises InvalidInput for a wrong one."""
        found = self.get_connection(self.quota_ops_conn_id)
        # Airflow tests a connection under a random name.
        return read_connection(found, name="of this form", source="this connection")

    def test_connection(self) -> tuple[bool, str]:
        """Ping the cluster as `quota-ops ping` does; return whether all is well, and what is not.

        Takes at most ten seconds, on the machine where Airflow runs the test.
        """
        from quota_ops.kafka.ping import ping
        from quota_ops.report.screens.ping import list_sentences

        try:
            pinged = ping(self.get_conn(), policy=None)
        except QuotaOpsError as error:
            return False, " ".join(str(error).split())
        return pinged.exit_code == 0, " ".join(list_sentences(pinged))


class PrometheusHook(BaseHook):
    """A Prometheus that measures what clients use; tasks read the same connection without it."""

    conn_name_attr = "quota_ops_prometheus_conn_id"
    default_conn_name = "quota_ops_prometheus_default"
    conn_type = PROMETHEUS
    hook_name = "quota-ops (Prometheus)"

    def __init__(self, quota_ops_prometheus_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.quota_ops_prometheus_conn_id = quota_ops_prometheus_conn_id

    def get_conn(self) -> PrometheusConnection:
        """Return the settings of the connection. Raises InvalidInput for a wrong one."""
        found = self.get_connection(self.quota_ops_prometheus_conn_id)
        return read_prometheus(found, name="of this connection", source="this connection")

    def test_connection(self) -> tuple[bool, str]:
        """Query how many targets were scraped; return whether it responds, and a message."""
        from quota_ops.usage.prometheus import open_prometheus

        try:
            with open_prometheus(self.get_conn()) as server:
                found = server.query("count(up)", datetime.now(UTC))
        except QuotaOpsError as error:
            return False, " ".join(str(error).split())
        scraped = int(float(found[0].value.value)) if found and found[0].value else 0
        return True, f"The server responds, and scrapes {counted(scraped, 'target')}."
