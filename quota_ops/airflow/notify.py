"""Notifications: when the notifiers of the DAG file are called, and with which text."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from airflow.sdk import BaseNotifier

from quota_ops.airflow.errors import NotBegun
from quota_ops.airflow.links import find_log_link, find_news_link
from quota_ops.airflow.runs import ClusterFolder, find_run_place, find_store, name_run
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.runs.stages import STOPPED, StageStatus

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
    """The name of the cluster, or of the DAG if it failed for all of them."""
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
        if not isinstance(getattr(context.get("exception"), "error", None), NotBegun):
            send_notification(notify, _describe_failure(cluster, run_store, context), context)

    return notify_failure


def make_dag_callback(dag: str, run_store: str | None, notify: Notify) -> Callback:
    """Make the callback for a failed run of a DAG that works on all clusters."""

    def notify_failure(context: "Context") -> None:
        from quota_ops.store.run.files import PAGE

        link = find_log_link(context)
        with suppress(QuotaOpsError):
            store = find_store(run_store)
            link = find_news_link(store.overview(name_run(context)) / PAGE, store, context)
        send_notification(notify, News("failed", dag, _find_reason(context), link), context)

    return notify_failure


def make_timeout_callback(subject: str, notify: Notify) -> Callback:
    """Make the callback of a DAG whose run Airflow ended, so that no task of it is left to send.

    Airflow calls it for every failed run; a task sends the notification of all others.
    """

    def notify_timeout(context: "Context") -> None:
        if context.get("reason") == "timed_out":
            sentence = (
                f"Airflow ended the run, which took longer than {context['dag'].dagrun_timeout}, "
                "and skipped the tasks that had not ended"
            )
            news = News("failed", subject, sentence, find_log_link(context))
            send_notification(notify, news, context)

    return notify_timeout


def _find_reason(context: "Context") -> str:
    """Return the error of the task; there is none if its process was killed."""
    return str(context.get("exception") or _KILLED).partition("\n")[0]


_KILLED = "the process of the task was killed, or its host died"


def _describe_failure(cluster: ClusterFolder, run_store: str | None, context: "Context") -> News:
    """Describe a run that failed; use the error if its cluster matches Git all the same."""
    from quota_ops.report.outline.summary import SyncStatus, summarize
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.run.files import PAGE
    from quota_ops.store.run.folder import RunFolder

    try:
        run = find_run_place(context, cluster, run_store)
        link = find_news_link(run / PAGE, find_store(run_store), context)
        report = read_report(RunFolder(run))
    except QuotaOpsError as error:
        return News("failed", cluster.name, error.message, find_log_link(context))
    ends = {stage.status for stage in report.stages}
    is_refused = ends & STOPPED == {StageStatus.REFUSED}
    news = describe_report("refused" if is_refused else "failed", report, link)
    summary = summarize(report)
    if summary.status is not SyncStatus.IN_SYNC:
        return news
    found = "; ".join((summary.reason, *summary.details))
    return news._replace(sentence=f"{_find_reason(context)}, although {found}.")


def describe_report(event: str, report: "Report", link: str) -> News:
    """Return the news of an event, with the summary of a report."""
    from quota_ops.report.outline.summary import summarize

    return News(event, report.cluster, summarize(report).sentence, link)
