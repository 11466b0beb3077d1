"""The log of a task for people: the result of its stage, and the report as text."""

import logging
from typing import TYPE_CHECKING

from quota_ops.model.text import counted

if TYPE_CHECKING:
    from quota_ops.store.run.folder import RunFolder

_log = logging.getLogger(__name__)
MOST_LINES = 200
"""The most lines of a report in a log; the page has them all."""


def describe_result(stage: str, folder: "RunFolder") -> str:
    """Return what a stage that succeeded found or did, as a sentence; Airflow logs it."""
    from quota_ops.model.quotas.tables import ACTUAL
    from quota_ops.report.outline.sentences import describe_validated
    from quota_ops.report.outline.summary import summarize
    from quota_ops.stages.report.run_report import read_report
    from quota_ops.store.run.state import RunState

    if stage == "describe":
        cluster = folder.about().cluster
        return f"{cluster} stores {counted(folder.count(ACTUAL), 'quota')}."
    if stage == "apply":
        state = RunState(folder)
        every = sum(len(outcome.keys) for outcome in state.outcomes)
        return f"{len(state.written):,} of {counted(every, 'change')} written."
    report = read_report(folder)
    return describe_validated(report) if stage == "validate" else summarize(report).sentence


def log_text(text: str, page: str) -> None:
    """Log a report, line by line; where it is too long, the last line has its page."""
    lines = text.rstrip("\n").split("\n")
    for line in lines[:MOST_LINES]:
        _log.info("%s", line)
    if lines[MOST_LINES:]:
        _log.info("… and %s more lines: %s", f"{len(lines) - MOST_LINES:,}", page)
