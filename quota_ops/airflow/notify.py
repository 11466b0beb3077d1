"""Notifications: when the notifiers of the DAG file are called, and with which text."""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from airflow.sdk import BaseNotifier

from quota_ops.airflow.errors import NotBegun
from quota_ops.airflow.links import find_news_link
from quota_ops.airflow.runs import ClusterFolder, find_run_place, find_store, name_run
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.runs.stages import STOPPED, StageStatus
from quota_ops.store.places.place import Place

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.definitions.deadline import DeadlineAlert

    from quota_ops.model.runs.report import Report

Notifiers = BaseNotifier | Sequence[BaseNotifier]
Callback = Callable[["Context"], None]


class Notify(TypedDict, total=False):
    """The notifiers for each event; a DAG file passes them to `build_dags`."""

    drift: Notifiers
    """The drift DAG found quotas that were changed outside Git, values of an earlier run, or
    unmanaged quotas that override those of Git."""
    waiting: Notifiers
    """A plan needs approval."""
    refused: Notifiers
    """A reconcile run failed: a guard blocked it, the broker or a person rejected it, or rows were
    not written or verified as planned."""
    failed: Notifiers
    """A run failed for any other reason."""
    late: "DeadlineAlert"
    """A run takes too long; Airflow watches the deadline."""


class News(NamedTuple):
    """The value `news` in the templates of a notifier."""

    event: str
    """The name in `Notify`."""
    cluster: str
    """The name of the cluster."""
    sentence: str
    """What happened, in one line."""
    link: str
    """The page of the approval for `waiting`; otherwise the report, or the page in Airflow whose
    log names it."""


def check_notify(notify: Notify | None) -> Notify:
    """Return a DAG file's notifiers, empty for None. Raises InvalidInput for an unknown event."""
    if unknown := sorted(set(notify or ()) - set(Notify.__annotations__)):
        raise InvalidInput(
            f"notify has unknown events: {', '.join(unknown)}",
            f"The events are {', '.join(Notify.__annotations__)}.",
        )
    return notify or {}


def send_notification(notify: Notify, news: News, context: "Context") -> None:
    """Call the notifiers of an event; a failure is logged and has no other effect."""
    found: Any = notify.get(news.event, ())
    for notifier in [found] if isinstance(found, BaseNotifier) else found:
        values: Any = dict(context) | {"news": news}
        try:
            copy(notifier)(values)  # a notifier renders its templates in place, for good
        except Exception:
            logging.getLogger(__name__).exception("notification failed: %s", news.sentence)


def make_failure_callback(
    cluster: ClusterFolder, run_store: str | None, notify: Notify
) -> Callback:
    """Make the callback for a reconcile run that did not succeed."""

    def notify_failure(context: "Context") -> None:
        from quota_ops.store.run.files import PAGE

        if isinstance(getattr(context.get("exception"), "error", None), NotBegun):
            return
        run = find_run_place(context, cluster, run_store)
        link = find_news_link(run / PAGE, find_store(run_store), context)
        news = _describe_failure(run, cluster.name, _find_reason(context), link)
        send_notification(notify, news, context)

    return notify_failure


def make_overview_callback(run_store: str | None, notify: Notify) -> Callback:
    """Make the callback for a drift run in which a cluster could not be compared."""

    def notify_overview(context: "Context") -> None:
        from quota_ops.store.run.files import PAGE

        store = find_store(run_store)
        page = store.overview(name_run(context)) / PAGE
        link = find_news_link(page, store, context)
        send_notification(notify, News("failed", "drift", _find_reason(context), link), context)

    return notify_overview


def _find_reason(context: "Context") -> str:
    return str(context.get("exception")).partition("\n")[0]


def _describe_failure(run: Place, cluster: str, why: str, link: str) -> News:
    """Describe a run that did not succeed; use `why` if its cluster matches Git all the same."""
    from quota_ops.report.outline.summary import SyncStatus, summarize
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.run.folder import RunFolder

    try:
        report = read_report(RunFolder(run))
    except QuotaOpsError as error:
        return News("failed", cluster, error.message, "")
    ends = {stage.status for stage in report.stages}
    is_refused = ends & STOPPED == {StageStatus.REFUSED}
    news = describe_report("refused" if is_refused else "failed", report, link)
    summary = summarize(report)
    if summary.status is not SyncStatus.IN_SYNC:
        return news
    return news._replace(
        sentence=f"{why}, although {'; '.join((summary.reason, *summary.details))}."
    )


def describe_report(event: str, report: "Report", link: str) -> News:
    """Return the news of an event, with the summary of a report."""
    from quota_ops.report.outline.summary import summarize

    return News(event, report.cluster, summarize(report).sentence, link)
