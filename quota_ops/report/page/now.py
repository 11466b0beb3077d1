"""The part of a page that a web server adds: later events, and links to the run in Airflow."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from quota_ops.model.text import counted, plural
from quota_ops.report.outline.formats import duration, moment
from quota_ops.report.page.template import rendered_part


class Link(NamedTuple):
    """A link to a page: `in_airflow` is whether Airflow shows it in its own frame."""

    words: str
    address: str
    in_airflow: bool = True


class Waiting(NamedTuple):
    """A plan that waits for approval: the title of the form, since when, and its address.

    `queued` is the number of runs that start only after the decision.
    """

    subject: str
    since: datetime
    address: str
    queued: int


class LaterRun(NamedTuple):
    """The newest run of a cluster after an overview: what it did, when, and its report."""

    sentence: str
    finished: str
    address: str


def format_overview(waiting: Sequence[Waiting], later: Sequence[LaterRun], now: datetime) -> str:
    """Return the events since an overview was written, as HTML; empty without any."""
    lines = [(_format_waiting(plan, now), Link("Decide", plan.address)) for plan in waiting]
    for run in later:
        age = duration((now - datetime.fromisoformat(run.finished)).total_seconds())
        words = f"{run.sentence} ({moment(run.finished)}, {age} ago)"
        lines.append((words, Link("Report", run.address, in_airflow=False)))
    return rendered_part("now.html", lines=lines, links=()) if lines else ""


def format_links(links: Sequence[Link]) -> str:
    """Return the links of a run's report, as HTML."""
    return rendered_part("now.html", lines=(), links=links)


def _format_waiting(plan: Waiting, now: datetime) -> str:
    since = f"{moment(plan.since.isoformat())} ({duration((now - plan.since).total_seconds())})"
    words = f"{plan.subject} It has waited for approval since {since}."
    if plan.queued:
        wait = plural(plan.queued, "waits", "wait")
        words += f" {counted(plan.queued, 'queued run')} of this DAG {wait} for that decision."
    return words
