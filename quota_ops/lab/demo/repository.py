"""The demo's Git repository: desired_state/demo as it is today and as it was a month ago."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from msgspec import Struct

from quota_ops.model.errors import InvalidInput

EXAMPLE = files("quota_ops.lab.demo") / "desired_state"
"""The folder desired_state/demo, in a checkout and in an installed wheel."""

DAG_FILE = """\
from pathlib import Path

from quota_ops.airflow import build_dags

globals().update(build_dags(Path({desired_state!r})))
"""
"""The DAG file for a user who has none; it does the same as `dags/quota_ops_dags.py`."""

_ETL = """\
owner: etl

quotas:
  - client-id: old-etl
    limits: {consumer_byte_rate: 20 MiB}

  - user: carol
    limits: {producer_byte_rate: 4 MiB}

  - user: dave
    limits: {request_percentage: 20}
"""

_LOAD = """\
owner: load-test

quotas:
  - user: ANONYMOUS
    limits: {producer_byte_rate: 5 MiB}
"""

Edit = Callable[[str], str]


def _replace(now: str, then: str) -> Edit:
    """Build an edit that replaces today's text with the text of a month ago."""

    def edit(text: str) -> str:
        if now not in text:
            raise ValueError(now)
        return text.replace(now, then)

    return edit


def _remove(name: str) -> Edit:
    """Build an edit that removes the quotas of a name, with their comment."""

    def edit(text: str) -> str:
        paragraphs = re.split(r"\n\n+", text)
        kept = [paragraph for paragraph in paragraphs if name not in paragraph]
        if len(kept) == len(paragraphs):
            raise ValueError(name)
        return "\n\n".join(kept).rstrip("\n") + "\n"

    return edit


A_MONTH_AGO: Mapping[str, tuple[Edit, ...]] = {
    "payments.yaml": (
        _replace("producer_byte_rate: 15 MiB", "producer_byte_rate: 10 MiB"),
        _replace("request_percentage: 12.5", "request_percentage: 10"),
        _remove("settlement-export"),
        _remove('"4711"'),
    )
}
"""The edits that turn today's files into those of a month ago; etl.yaml existed too."""


class Repository(Struct, frozen=True):
    """A repository with desired_state/demo and dags, and the commits of the demo."""

    root: Path

    @property
    def cluster(self) -> Path:
        """The folder of the cluster."""
        return self.root / "desired_state" / "demo"

    @property
    def dags(self) -> Path:
        """The folder of the DAG file."""
        return self.root / "dags"

    def begin(self) -> None:
        """Commit the desired state of a month ago. Raises InvalidInput if the example differs."""
        self.dags.mkdir(parents=True)
        text = DAG_FILE.format(desired_state=str(self.root / "desired_state"))
        (self.dags / "quota_ops_dags.py").write_text(text)
        self._copy_example()
        for name, edits in A_MONTH_AGO.items():
            path = self.cluster / name
            text = path.read_text(encoding="utf-8")
            for edit in edits:
                text = _apply_edit(edit, text, name)
            path.write_text(text, encoding="utf-8")
        (self.cluster / "etl.yaml").write_text(_ETL)
        self._git("init", "--quiet")
        self._commit("Quotas of a month ago")

    def catch_up(self) -> None:
        """Commit the desired state of today."""
        self._copy_example()
        (self.cluster / "etl.yaml").unlink()
        self._commit("More for alice and bob, an export, the tills; etl is retired")

    def limit_client(self) -> None:
        """Commit a quota of the client that the demo runs, which does not authenticate."""
        (self.cluster / "load.yaml").write_text(_LOAD, encoding="ascii")
        self._commit("At most 5 MiB per second for the load test")

    def _copy_example(self) -> None:
        with as_file(EXAMPLE) as example:
            shutil.copytree(example, self.cluster, dirs_exist_ok=True)

    def _commit(self, message: str) -> None:
        self._git("add", "--all")
        author = ("-c", "user.name=quota-ops demo", "-c", "user.email=demo@localhost")
        self._git(*author, "commit", "--quiet", "--message", message)

    def _git(self, *arguments: str) -> None:
        """Run Git without the user's settings; without Git, the commits are unknown."""
        git = shutil.which("git")
        if git is None:
            return
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        no_settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(
            [git, "-C", str(self.root), *arguments], env=environ | no_settings, check=True
        )


def _apply_edit(edit: Edit, text: str, name: str) -> str:
    try:
        return edit(text)
    except ValueError as missing:
        raise InvalidInput(
            f"desired_state/demo/{name} has no {missing}, which the demo needs",
            "Restore it: git checkout desired_state/demo. Then run the demo again.",
        ) from None
