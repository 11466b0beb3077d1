"""The shell of a newcomer: an empty home, this repository's desired state, a real broker."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from quota_ops.jvm.java import QUICK_START, find_java
from quota_ops.lab.kafka.jars import fetch_jars
from tests.docs.markdown import ROOT
from tests.preloaded import preloaded

_BEFORE = "git init --quiet && git add . && git commit --quiet --message Quotas\n"
_END = "\x1e"
_ENDED = re.compile(rf"\n?{_END}(\d+)\n")


class Said(NamedTuple):
    """The output of a command, with standard error, and its exit code."""

    output: str
    code: int

    def __str__(self) -> str:
        ended = [f"[exit code {self.code}]"] if self.code else []
        return "\n".join([*([self.output] if self.output else []), *ended])


@dataclass(frozen=True)
class Shell:
    """Runs commands in bash; `told` maps texts of a page to their values in the test."""

    home: Path
    told: Mapping[str, str]

    @property
    def place(self) -> Path:
        """Return the folder of a page's first command: a checkout with the desired state."""
        return self.home / "quota-ops"

    def prepare(self) -> None:
        """Make home, checkout and the programs that pages call."""
        for folder in ("desired_state", "docs/examples"):
            shutil.copytree(ROOT / folder, self.place / folder)
        (self.home / "ca.pem").touch()
        self._write_program("quota-ops", f'exec {preloaded()} "$@"')
        self._program("python")
        self._program("kafka-acls.sh", "-m", "tests.docs.kafka_acls")
        java = " ".join((find_java(), *QUICK_START, "-cp", f"'{fetch_jars()}/*'"))
        self._write_program("kafka-configs.sh", f'exec {java} kafka.admin.ConfigCommand "$@"')

    def connection(self, name: str, text: str) -> None:
        """Write a connection file."""
        file = self.home / ".config" / "quota-ops" / "connections" / f"{name}.properties"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, commands: Sequence[str]) -> list[Said]:
        """Return the output of each command, run in order in one shell."""
        script = self.home / "page.sh"
        ends = (f"{self._here(command)}\nprintf '{_END}%d\\n' $?\n" for command in commands)
        script.write_text("".join([_BEFORE, *ends]), encoding="utf-8")
        said = subprocess.run(
            ["bash", script],  # noqa: S607 - the machine's own bash
            cwd=self.place,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout
        parts = _ENDED.split(self._as_told(said))
        return [
            Said(output.rstrip(), int(code))
            for output, code in zip(parts[::2], parts[1::2], strict=False)
        ]

    def _here(self, command: str) -> str:
        for told, here in self.told.items():
            command = command.replace(told, here)
        return command

    def _as_told(self, said: str) -> str:
        for told, here in self.told.items():
            said = said.replace(here, told)
        return said.replace(str(self.home), "~")

    def _program(self, name: str, *arguments: str) -> None:
        words = " ".join(f"'{one}'" for one in (sys.executable, *arguments))
        self._write_program(name, f'PYTHONPATH={ROOT} exec {words} "$@"')

    def _write_program(self, name: str, line: str) -> None:
        file = self.home / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{line}\n")
        file.chmod(0o755)

    def _environment(self) -> dict[str, str]:
        day = "2026-11-21T10:00:00Z"
        git = {"NAME": "quota-ops", "EMAIL": "quota-ops@localhost", "DATE": day}
        people = {f"GIT_{who}_{key}": git[key] for who in ("AUTHOR", "COMMITTER") for key in git}
        return people | {
            "HOME": str(self.home),
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
        }


_VOLATILE = (
    (r"\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\dZ(-[0-9a-f]{4})?", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "TIME"),
    (r"\b\d{4}-\d\d-\d\d\b", "DAY"),
    (r'"queries": \d+', '"queries": TIMES'),
    (r'"(applied|attempt)": "[0-9a-f]{32}"', r'"\1": ATTEMPT'),
    (r'"rows": "[0-9a-f]{64}"', '"rows": DIGEST'),
    (r"\b\d[\d.]* (ms|s)\b|\b\d+ min \d\d s\b", "DURATION"),
    (r"\b[0-9a-f]{40}\b|\b(?=[0-9a-f]*[a-f])[0-9a-f]{7}\b", "COMMIT"),
    (r"(?<=  )\d[\d.]* kB(?=  |\n|$)", "SIZE"),  # of a run: its files hold times
    # One in thirty has digits alone, as other numbers have: it is in a column, or after a word.
    (r"(?<= at )\d{7}\b|(?<= since )\d{7}\b|(?<=commit )\d{7}\b|(?<=commit `)\d{7}\b", "COMMIT"),
    (r"(?<=  )\d{7}(?=  |\n|$)|(?<=and )\d{7}(?= after it)", "COMMIT"),
    (r"(?<=SIZE  )\S+(?=\n|$)", "NAME"),
    (r" {2,}", "  "),
)


def without_moment(text: str) -> str:
    """Return a text without times, durations, commits and sizes, which differ between runs."""
    for pattern, word in _VOLATILE:
        text = re.sub(pattern, word, text)
    return text
