"""The command line, called in this process."""

import gc
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main


def call_cli(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Return what a process with these arguments, environment and folder would write to pipes.

    The process itself, its streams and its end are tested in tests/cli/test_process.py.
    """
    collects = gc.isenabled()
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["quota-ops", *arguments])
        try:
            ended = CliRunner().invoke(
                main, arguments, prog_name="quota-ops", catch_exceptions=False
            )
        finally:
            if collects:
                gc.enable()  # which the command line turns off
    return subprocess.CompletedProcess(
        ["quota-ops", *arguments], ended.exit_code, ended.stdout, ended.stderr
    )
