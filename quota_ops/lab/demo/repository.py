"""The demo's own Git repository: desired_state/demo as it is, and as it was a month ago."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from quota_ops.model.errors import InvalidInput

EXAMPLE = files("quota_ops.lab.demo") / "desired_state"
"""The folder desired_state/demo, also where quota-ops is an installed wheel."""

DAG_FILE = """\
from pathlib import Path

from quota_ops.airflow import build_dags

globals().update(build_dags(Path({desired_state!r})))
"""
"""The DAG file of whoever has none; `dags/quota_ops_dags.py` is the same by hand."""

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

Edit = Callable[[str], str]


def _instead(now: str, then: str) -> Edit:
    """What stood there in place of today's text."""

    def edit(text: str) -> str:
        if now not in text:
            raise ValueError(now)
        return text.replace(now, then)

    return edit


def _without(name: str) -> Edit:
    """The file without the quotas, and their comment, of a name that came later."""

    def edit(text: str) -> str:
        paragraphs = re.split(r"\n\n+", text)
        kept = [one for one in paragraphs if name not in one]
        if len(kept) == len(paragraphs):
            raise ValueError(name)
        return "\n\n".join(kept).rstrip("\n") + "\n"

    return edit


A_MONTH_AGO: Mapping[str, tuple[Edit, ...]] = {
    "payments.yaml": (
        _instead("producer_byte_rate: 15 MiB", "producer_byte_rate: 10 MiB"),
        _instead("request_percentage: 12.5", "request_percentage: 10"),
        _without("settlement-export"),
        _without('"4711"'),
    ),
}
"""How files differed from today's; etl.yaml was there besides."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with desired_state/demo and dags; its commits are those of the demo's story."""

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
        """Commit the desired state of a month ago; InvalidInput when the example has changed."""
        self.dags.mkdir(parents=True)
        text = DAG_FILE.format(desired_state=str(self.root / "desired_state"))
        (self.dags / "quota_ops_dags.py").write_text(text)
        self._copy_example()
        for name, edits in A_MONTH_AGO.items():
            path = self.cluster / name
            text = path.read_text(encoding="utf-8")
            for edit in edits:
                text = _edited(edit, text, name)
            path.write_text(text, encoding="utf-8")
        (self.cluster / "etl.yaml").write_text(_ETL)
        self._git("init", "--quiet")
        self._commit("Quotas of a month ago")

    def catch_up(self) -> None:
        """Commit the desired state of today."""
        self._copy_example()
        (self.cluster / "etl.yaml").unlink()
        self._commit("More for alice and bob, an export, the tills; etl is retired")

    def _copy_example(self) -> None:
        with as_file(EXAMPLE) as example:
            shutil.copytree(example, self.cluster, dirs_exist_ok=True)

    def _commit(self, message: str) -> None:
        self._git("add", "--all")
        author = ("-c", "user.name=quota-ops demo", "-c", "user.email=demo@localhost")
        self._git(*author, "commit", "--quiet", "--message", message)

    def _git(self, *arguments: str) -> None:
        """Run Git without anybody's settings; where there is no Git, the commits are unknown."""
        git = shutil.which("git")
        if git is None:
            return
        mine = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run([git, "-C", str(self.root), *arguments], env=mine | nobody, check=True)


def _edited(edit: Edit, text: str, name: str) -> str:
    try:
        return edit(text)
    except ValueError as missing:
        raise InvalidInput(
            f"desired_state/demo/{name} has no {missing}, which the demo tells about",
            "Bring it back (git checkout desired_state/demo), then run the demo again.",
        ) from None
