"""The end of what leaves no report, kept and sent as a report's would be."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial

import click

from quota_ops.cli.interrupt import naming
from quota_ops.kafka.connection import find_connection
from quota_ops.model.progress import ConcurrentWrite
from quota_ops.model.report import Report
from quota_ops.report.audit import audit_record
from quota_ops.report.audit_verb import Verb
from quota_ops.report.progress import concurrent_words
from quota_ops.runs import command_record
from quota_ops.stages.report import end_record
from quota_ops.store.run_folder import RunFolder


def keep_run(folder: RunFolder, report: Report) -> None:
    """Keep the end of a run that wrote and makes no report; say so when the audit topic misses it.

    Raises InvalidInput when the run store cannot be written.
    """
    _tell(end_record.run(folder, partial(audit_record, report), find_connection))


def keep_verb(folder: RunFolder, verb: Verb) -> None:
    """Keep the end of an alter, adopt or release in the same way."""
    _tell(command_record.run(folder, verb))


def stoppable(folder: RunFolder, verb: Verb, left: str) -> AbstractContextManager[None]:
    """A block that a signal may end; where it has left that artefact by then, its end is kept."""

    def keep() -> None:
        if folder.has(left):
            keep_verb(folder, verb)

    return naming(folder.path, keep)


def warn_of_writes(writes: Iterable[ConcurrentWrite]) -> None:
    """Name on stderr the runs that are writing the entities of a command at this moment."""
    for words in concurrent_words(writes):
        click.echo(words, err=True)


def _tell(missed: str | None) -> None:
    if missed is not None:
        click.echo(missed, err=True)
