"""The entry Quotas in Airflow's navigation, and the pages behind it.

Airflow imports plug-ins in every process, so the pages are imported with the first request.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from quota_ops.provider import PAGES

_Message = MutableMapping[str, Any]


async def pages(
    scope: _Message,
    receive: Callable[[], Awaitable[_Message]],
    send: Callable[[_Message], Awaitable[None]],
) -> None:
    """Respond to a request for a page of the run store."""
    await import_module("quota_ops.airflow.pages").app(scope, receive, send)


BASE = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
"""The path that all addresses of Airflow's web server begin with."""


class QuotaOpsPlugin(AirflowPlugin):
    """The newest report of all clusters in the navigation, and every report of a DAG run."""

    name = "quota_ops"
    fastapi_apps = [  # noqa: RUF012 - as Airflow declares it
        {"name": "quota-ops", "app": pages, "url_prefix": PAGES}
    ]
    external_views = [  # noqa: RUF012 - likewise
        {"name": "Quotas", "href": f"{BASE}{PAGES}/", "destination": "nav", "url_route": "quotas"}
    ]
