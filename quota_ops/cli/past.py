"""What `show` shows of an earlier run."""

from dataclasses import replace
from functools import partial

import click

from quota_ops.cli.layout import show
from quota_ops.model.errors import InvalidInput
from quota_ops.report.history import record_screen
from quota_ops.report.screen import Line, Screen, Table, Tone, line
from quota_ops.report.text import report_screen
from quota_ops.stages.report.run_report import read_finished, read_report
from quota_ops.store.retention import refuse_pruned
from quota_ops.store.run_folder import ADOPTED, ALTER, PAGE, RELEASED, RunFolder

_RECORDS = {ALTER: "Altered", ADOPTED: "Adopted", RELEASED: "Released"}


def show_past(folder: RunFolder, output: str) -> None:
    """Show a run as its report would now tell it; InvalidInput when run.json is damaged."""
    refuse_pruned(folder)
    report = replace(read_report(folder), finished=read_finished(folder))
    if output == "json":
        from quota_ops.report.data import as_json

        click.echo(as_json(report), nl=False)
    elif output == "markdown":
        from quota_ops.report.markdown import as_markdown

        click.echo(as_markdown(report), nl=False)
    else:
        show((*report_screen(report), *_records(folder), *_place(folder)))


def _records(folder: RunFolder) -> Screen:
    """What an alter, adopt or release left: those runs have no plan."""
    blocks: list[Line | Table] = []
    for name, heading in _RECORDS.items():
        if folder.has(name):
            try:
                blocks += folder.read_as(name, partial(record_screen, heading))
            except InvalidInput as error:
                blocks.append(line(error.message, Tone.REFUSAL))
    return blocks


def _place(folder: RunFolder) -> Screen:
    page = folder.path / PAGE
    last = f"report: {page}" if page.exists() else f"run: {folder.path}"
    return (line(), line(last, Tone.CONTEXT))
