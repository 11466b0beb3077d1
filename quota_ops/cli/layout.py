"""How a screen reaches people: in colour on a terminal, plain in a pipe."""

import sys

import click

from quota_ops.report.screen import Screen, plain

TEXT = "text"
"""The `--format` for people."""


def show(screen: Screen) -> None:
    """Lay a screen out: in colour on a terminal, plain in a pipe."""
    if not sys.stdout.isatty():
        click.echo(plain(screen), nl=False)
        return
    from quota_ops.report.terminal import show as in_colour

    in_colour(screen)
