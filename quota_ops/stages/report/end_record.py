"""The record of a run's end: a file that is never overwritten, and optionally a Kafka topic."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.model.errors import InvalidInput
from quota_ops.model.runs.end import End
from quota_ops.model.runs.outcome import Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.run import Audited
from quota_ops.model.stored import to_json
from quota_ops.stages.report.audit import audit_record, list_changes, messages
from quota_ops.store.places.json_text import json_text
from quota_ops.store.places.numbered_files import create_next
from quota_ops.store.run.files import AUDITED, END
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.marks import mark_unsettled, unmark
from quota_ops.store.run.state import RunState

TOPIC = "QUOTA_OPS_AUDIT_TOPIC"
CONNECTION = "QUOTA_OPS_AUDIT_CONNECTION"
"""The variables with the topic's name and its cluster's connection (default: the run's own)."""


def find_audit_connection(name: str, *, file: Path | None = None) -> Connection:
    """Find the connection to the audit topic by its name.

    `file` is the connection file of the run's own cluster, which is read instead unless the
    variable CONNECTION names another connection. Raises InvalidInput as the other lookups do.
    """
    return find_connection(name, file=None if os.environ.get(CONNECTION) else file)


def record_end(
    folder: RunFolder, report: Report, find_audit: Callable[[str], Connection]
) -> str | None:
    """Write end-0001.json, or the next number, and send it to the audit topic if one is set.

    The message has the changes too. Returns why the record is not in the topic, or None; an error
    of the topic never fails the run. `find_audit` looks up the connection to the topic's cluster by
    its name.
    """
    number = create_next(
        lambda end: folder.place / END.of(end),
        lambda end: json_text(to_json(End, audit_record(report, end))).encode(),
    )
    missed = _send(folder, report, number, find_audit)
    # Why after the topic: the next run sends the record of a run that is killed before.
    with suppress(InvalidInput):  # a damaged file keeps its mark: the run does not count as ended
        state = RunState(folder)
        if not state.is_writing:
            is_known = all(row.status is not Status.UNKNOWN for row in state.outcomes)
            (unmark if is_known else mark_unsettled)(folder.place)
    return missed


def _send(
    folder: RunFolder, report: Report, number: int, find_audit: Callable[[str], Connection]
) -> str | None:
    topic = os.environ.get(TOPIC)
    if not topic:
        return None
    sent = messages(audit_record(report, number), list_changes(report))
    try:
        from quota_ops.kafka.audit_topic import produce  # only with a topic

        found = find_audit(os.environ.get(CONNECTION) or folder.policy().connection)
        failure = produce(found, topic, report.cluster_id or report.cluster, sent)
    except Exception as error:  # noqa: BLE001 - an error of the topic never fails a run
        failure = " ".join(str(error).split())  # reports show it as one line
    words = failure and f"the end of this run is not in the audit topic {topic}: {failure}"
    folder.write(AUDITED, Audited(topic, len(sent), words))
    return words
