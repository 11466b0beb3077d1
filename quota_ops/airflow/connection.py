"""Airflow's connections, for clusters: read inside a task, so that no secret is ever passed on."""

import json
from collections.abc import Iterator
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from quota_ops.kafka import connection as kafka

PREFIX = "quota_ops_"


def find_connection(name: str) -> kafka.Connection:
    """The Airflow connection quota_ops_NAME; where there is none, what the command line would find.

    Host and port are bootstrap.servers (the host may list several with their ports), login and
    password the SASL ones; extra is a JSON object of librdkafka's properties, which count first.
    Raises InvalidInput when it is not a connection to a cluster.
    """
    conn_id = PREFIX + name
    found = find(conn_id)
    if found is None:
        return kafka.find_connection(name)
    settings = dict(_properties(found))
    return kafka.Connection.of(settings, name=name, source=f"the Airflow connection {conn_id}")


def find(conn_id: str) -> Connection | None:
    """An Airflow connection, or None when it is not defined."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None


def _properties(found: Connection) -> Iterator[tuple[str, str]]:
    extra: dict[str, Any] = found.extra_dejson
    fields = {
        "bootstrap.servers": f"{found.host}:{found.port}" if found.port else found.host,
        "sasl.username": found.login,
        "sasl.password": found.password,
    }
    for key, value in (fields | extra).items():
        if value not in {None, ""}:
            yield key, value if isinstance(value, str) else json.dumps(value)
