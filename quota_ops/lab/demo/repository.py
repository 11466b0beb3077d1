"""The demo's Git repository: desired_state/demo as it is today and as it was a month ago."""

import os
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

from msgspec import Struct

EXAMPLE = files("quota_ops.lab.demo") / "desired_state"
"""The folder desired_state/demo, in a checkout and in an installed wheel."""

DAG_FILE = """\
from pathlib import Path

from quota_ops.airflow import build_dags

globals().update(build_dags(Path({desired_state!r})))
"""
"""The DAG file for a user who has none; it does the same as `dags/quota_ops_dags.py`."""

_PAYMENTS = """\
owner: payments

quotas:
  - user: alice
    limits: {producer_byte_rate: 10 MiB, consumer_byte_rate: 20 MiB}
    reason: card settlement

  - user: alice
    client-id: {default: true}
    limits: {request_percentage: 50}

  - user: bob
    limits: {producer_byte_rate: 1 MiB, request_percentage: 10}
"""

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
        """Commit the desired state of a month ago."""
        self.dags.mkdir(parents=True)
        text = DAG_FILE.format(desired_state=str(self.root / "desired_state"))
        (self.dags / "quota_ops_dags.py").write_text(text)
        self._copy_example()
        (self.cluster / "payments.yaml").write_text(_PAYMENTS)
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
