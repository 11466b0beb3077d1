"""Airflow connections to clusters and Prometheus, read in the task so that no secret leaves it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Any, TypeVar

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from quota_ops.kafka import connection as kafka
from quota_ops.model.errors import InvalidInput
from quota_ops.usage import connection as prometheus

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
    """Return an Airflow connection; None if it is not defined."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None


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
