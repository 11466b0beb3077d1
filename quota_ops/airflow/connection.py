"""Airflow's connections, for clusters: read inside a task, so that no secret is ever passed on."""

import json
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
"""Names that librdkafka and Kafka's Java clients share."""


def find_connection(name: str) -> kafka.Connection:
    """The Airflow connection quota_ops_NAME; where there is none, what the command line would find.

    Host and port are bootstrap.servers (the host may list several with their ports), login and
    password those of SASL, or of the OAuth client with OAUTHBEARER; extra is a JSON object of any
    settings that a connection file may have, which count first.
    Raises InvalidInput when it is not a connection to a cluster.
    """
    conn_id = PREFIX + name
    source = f"the Airflow connection {conn_id}"
    found = find(conn_id)
    if found is None:
        return kafka.find_connection(name, before=source)
    return kafka.Connection.of(dict(_properties(found)), name=name, source=source)


def find(conn_id: str) -> Connection | None:
    """An Airflow connection, or None when it is not defined."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None


def _properties(found: Connection) -> Iterator[tuple[str, str]]:
    extra: dict[str, Any] = found.extra_dejson
    mechanism = str(extra.get("sasl.mechanism") or extra.get("sasl.mechanisms")).upper()
    login, password = _LOGIN_FIELDS.get(mechanism, ("sasl.username", "sasl.password"))
    fields = {
        "bootstrap.servers": _servers(found.host or "", found.port),
        login: found.login,
        password: found.password,
    }
    for key, value in (fields | extra).items():
        if value not in {None, ""}:
            yield key, value if isinstance(value, str) else json.dumps(value)


def _servers(host: str, port: int | None) -> str:
    with suppress(ValueError):  # Airflow takes the brackets off an address in an URI
        host = f"[{IPv6Address(host)}]"
    return f"{host}:{port}" if port else host
