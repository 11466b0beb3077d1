"""Links to reports that people can open: on a web server of yours, or in Airflow.

None of them is a presigned address of an object store: whoever gets one can read the report, and
it expires.
"""

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk.configuration import conf

from quota_ops.store.place import Place
from quota_ops.store.run_store import RunStore

if TYPE_CHECKING:
    from airflow.sdk import Context

ENVIRONMENT = "QUOTA_OPS_REPORT_URL"
"""The address at which a web server shows the files of the run store."""


def find_page_link(page: Place, store: RunStore) -> str:
    """Return the link to a page of a run store; without a web server, the page's place."""
    base = os.environ.get(ENVIRONMENT)
    if not base:
        return str(page)
    path = page.key.removeprefix(store.root.key).strip("/")
    return f"{base.rstrip('/')}/{quote(path, safe='/~+')}"


def find_news_link(page: Place, store: RunStore, context: "Context") -> str:
    """Return the link to a page in a notification.

    Without a web server it is the page of the task in Airflow, whose log names the page; if
    Airflow does not know its own address either, the page's place.
    """
    if not os.environ.get(ENVIRONMENT) and conf.get("api", "base_url", fallback=None):
        task: Any = context["ti"]
        return str(task.log_url)
    return find_page_link(page, store)
