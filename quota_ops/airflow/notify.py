"""Who is told of what: Airflow's notifiers, by what happened in a DAG run."""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from airflow.sdk import BaseNotifier

from quota_ops.airflow.runs import run_place
from quota_ops.model.difference import EARLIER_KINDS
from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.model.report import STOPPED, StageStatus
from quota_ops.store.place import Place

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.definitions.deadline import DeadlineAlert

    from quota_ops.model.report import Report

Notifiers = BaseNotifier | Sequence[BaseNotifier]
Callback = Callable[["Context"], None]


class Notify(TypedDict, total=False):
    """Notifiers for each thing that may happen; a DAG file gives them to `build_dags`."""

    drift: Notifiers
    """The drift DAG found that somebody else changed a cluster, or an earlier run's value again."""
    waiting: Notifiers
    """A plan waits for a person."""
    refused: Notifiers
    """A guard, a broker or a person refused, or rows did not end, or were not read, as planned."""
    failed: Notifiers
    """A run failed for any other reason."""
    late: "DeadlineAlert"
    """A run takes too long; Airflow itself looks at the clock."""


class News(NamedTuple):
    """What a notifier's templates find as `news`."""

    event: str
    """The name in `Notify`."""
    cluster: str
    """The cluster's name."""
    sentence: str
    """What happened, in one line."""
    link: str
    """The page of the question, if it waits, else the path of the report."""


def checked(notify: Notify | None) -> Notify:
    """What a DAG file gave, or nothing; InvalidInput for an event that there is not."""
    if unknown := sorted(set(notify or ()) - set(Notify.__annotations__)):
        raise InvalidInput(
            f"notify has {', '.join(unknown)}, and nothing of that name happens",
            f"There are {', '.join(Notify.__annotations__)}.",
        )
    return notify or {}


def tell(notify: Notify, news: News, context: "Context") -> None:
    """Call the notifiers of an event; one that fails is in the log and changes nothing else."""
    found: Any = notify.get(news.event, ())
    for notifier in [found] if isinstance(found, BaseNotifier) else found:
        told: Any = dict(context) | {"news": news}
        try:
            copy(notifier)(told)  # a notifier's templates are rendered in place, for good
        except Exception:
            logging.getLogger(__name__).exception("nobody was told: %s", news.sentence)


def when_red(cluster_folder: str, run_store: str | None, notify: Notify) -> Callback:
    """What tells, after the report of a reconcile run that did not succeed."""

    def say(context: "Context") -> None:
        run = run_place(context, cluster_folder, run_store)
        tell(notify, _red(run, Path(cluster_folder).name, _why(context)), context)

    return say


def when_drifted(run_store: str | None, notify: Notify) -> Callback:
    """What tells, after the drift DAG's report of a cluster, that there is drift."""

    def say(context: "Context") -> None:
        task: Any = context["task"]
        run = run_place(context, task.op_kwargs["cluster_folder"], run_store)
        report = _read(run)
        if report.plan is not None and any(
            row.is_drift or row.kind in EARLIER_KINDS for row in report.plan.differences
        ):
            tell(notify, _news("drift", report, run), context)

    return say


def when_unseen(notify: Notify) -> Callback:
    """What tells that the drift DAG could not look at every cluster."""

    def say(context: "Context") -> None:
        tell(notify, News("failed", "drift", _why(context), ""), context)

    return say


def _why(context: "Context") -> str:
    return str(context.get("exception")).partition("\n")[0]


def _red(run: Place, cluster: str, why: str) -> News:
    """What is told of a red run, in the words of `why` where its cluster matches Git."""
    from quota_ops.report.summary import SyncStatus, answer

    try:
        report = _read(run)
    except QuotaOpsError as error:
        return News("failed", cluster, error.message, "")
    ends = {one.status for one in report.stages}
    refused = ends & STOPPED == {StageStatus.REFUSED}
    news = _news("refused" if refused else "failed", report, run)
    said = answer(report)
    if said.word is not SyncStatus.IN_SYNC:
        return news
    return news._replace(sentence=f"{why}, though {'; '.join((said.reason, *said.details))}.")


def _news(event: str, report: "Report", run: Place) -> News:
    from quota_ops.report.summary import summary_sentence
    from quota_ops.store.run_folder import PAGE

    return News(event, report.cluster, summary_sentence(report), str(run / PAGE))


def _read(run: Place) -> "Report":
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.run_folder import RunFolder

    return read_report(RunFolder(run))
