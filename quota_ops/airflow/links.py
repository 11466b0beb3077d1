"""Links to reports that people can open: on a web server of yours, or in Airflow.

None of them is a presigned address of an object store: anyone who gets one can read the report, and
it expires.
"""

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink, get_current_context
from airflow.sdk.configuration import conf

from quota_ops.provider import PAGES
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore

if TYPE_CHECKING:
    from airflow.sdk import Context

_KEY = "report_link"
"""The XCom of a task's own link."""
ENVIRONMENT = "QUOTA_OPS_REPORT_URL"
"""The address at which a web server shows the files of the run store."""


def find_page_link(page: Place, store: RunStore) -> str:
    """Return the link to a page of a run store, in Airflow unless another web server shows it.

    If Airflow does not know its own address either, return the page's place.
    """
    base = os.environ.get(ENVIRONMENT) or _find_airflow_pages()
    if not base:
        return str(page)
    path = page.key.removeprefix(store.root.key).strip("/")
    return f"{base.rstrip('/')}/{quote(path, safe='/~+')}"


def find_news_link(page: Place, store: RunStore, context: "Context") -> str:
    """Return the link to a page, or to the log of the task if it ended before it wrote the page."""
    return find_page_link(page, store) if page.exists() else find_log_link(context)


def find_log_link(context: "Context") -> str:
    """Return the link to the log of the task, if there is one and Airflow knows its own address."""
    task: Any = context.get("ti")
    return str(task.log_url) if task and _find_airflow_pages() else ""


def _find_airflow_pages() -> str | None:
    address: str | None = conf.get("api", "base_url", fallback=None)
    return address and address.rstrip("/") + PAGES


class ReportLink(BaseOperatorLink):
    """The button Report on the page of a task, if a web server shows the run store."""

    name = "Report"
    xcom_key = _KEY

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link of `offer_link`; empty if the task has no report, or no web server."""
        del operator
        return str(ti_key.xcom_pull(task_ids=ti_key.task_id, key=_KEY) or "")


def offer_link(page: str) -> None:
    """Make the button Report of the running task open a page, if `page` is a link."""
    if page.startswith(("http://", "https://")):
        task: Any = get_current_context()["ti"]
        task.xcom_push(_KEY, page)


def add_report_button(task: Any) -> None:
    """Add the button Report to a task that calls `offer_link`."""
    task.operator.operator_extra_links = (ReportLink(),)
