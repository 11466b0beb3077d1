"""How a screen reaches people: in colour on a terminal, plain in a pipe."""

import sys
from typing import TextIO

import click

from quota_ops.report.screen import Screen, plain

TEXT = "text"
"""The `--format` for people."""


def show(screen: Screen, stream: TextIO | None = None) -> None:
    """Lay a screen out on stdout, or another stream: in colour on a terminal, plain in a pipe."""
    stream = stream or sys.stdout
    if not stream.isatty():
        click.echo(plain(screen), file=stream, nl=False)
        return
    from quota_ops.report.terminal import show as in_colour

    in_colour(screen, stream)
