"""Airflow connections of clusters, read inside the task so that no secret leaves it."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv6Address
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from quota_ops.kafka import connection as kafka

PREFIX = "quota_ops_"
_LOGIN_FIELDS = {
    "OAUTHBEARER": (
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
    )
}
"""The properties for login and password, by names that librdkafka and Java clients share."""
_PORT = re.compile(r":\d+$")


def find_connection(name: str) -> kafka.Connection:
    """Return the Airflow connection quota_ops_NAME, or else the connection of the command line.

    Raises InvalidInput if it is not a connection to a cluster.
    """
    conn_id = PREFIX + name
    source = f"the Airflow connection {conn_id}"
    found = find_airflow_connection(conn_id)
    if found is None:
        return kafka.find_connection(name, before=source)
    return read_connection(found, name=name, source=source)


def read_connection(found: Connection, *, name: str, source: str) -> kafka.Connection:
    """Return an Airflow connection of any type as a connection to a cluster.

    Host and port are bootstrap.servers: the host may list several brokers, and the port is that of
    each that has none. Login and password are those of SASL, or with OAUTHBEARER the id and the
    secret of the OAuth client. Extra is a JSON object of any settings of a connection file, which
    override the fields. Raises InvalidInput if it is not a connection to a cluster.
    """
    return kafka.Connection.of(dict(_list_properties(found)), name=name, source=source)


def find_airflow_connection(conn_id: str) -> Connection | None:
    """Return an Airflow connection; None if it is not defined."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None


def _list_properties(found: Connection) -> Iterator[tuple[str, str]]:
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
    for key, value in (fields | extra).items():
        if value not in (None, ""):
            yield key, value if isinstance(value, str) else json.dumps(value)


def _join_address(hosts: str, port: int | None) -> str:
    """Return bootstrap.servers: the port is that of every host that names none."""
    return ",".join(_add_port(host.strip(), port) for host in hosts.split(","))


def _add_port(host: str, port: int | None) -> str:
    with suppress(ValueError):  # Airflow removes the brackets of an IPv6 address in a URI
        host = f"[{IPv6Address(host)}]"
    return f"{host}:{port}" if host and port and not _PORT.search(host) else host
