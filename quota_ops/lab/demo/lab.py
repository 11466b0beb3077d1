"""What the demo does with the parts: commands, DAG runs, and changes outside Git."""

import os
import shlex
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from quota_ops.kafka.connection import find_connection
from quota_ops.lab.airflow.server import RunningAirflow
from quota_ops.lab.demo.by_hand import ByHand, set_by_hand
from quota_ops.lab.demo.dag_run import TASKS, run_dag
from quota_ops.lab.demo.home import Home
from quota_ops.lab.demo.narration import Narration
from quota_ops.model.errors import Refused
from quota_ops.model.report import Report
from quota_ops.report.screen import Tone, line
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.run_names import LAST, find_run
from quota_ops.store.run_store import RunStore, open_place


class StoryFailed(Refused):
    """A step of the demo did not end as the story has it."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the demo did not go as told: {message}",
            "quota-ops demo --keep FOLDER keeps its runs and logs to look at.",
        )


def expect(claim: object, otherwise: str) -> None:
    """Hold the story to what happened; raises NotAsTold."""
    if not claim:
        raise StoryFailed(otherwise)


@dataclass(frozen=True, slots=True)
class Lab:
    """The home, who tells what happens, and the Airflow that is on its way."""

    home: Home
    narration: Narration
    airflow: Future[RunningAirflow]

    def set_by_hand(self, *quotas: ByHand) -> None:
        """Change quotas of the cluster outside Git."""
        set_by_hand(find_connection("demo", file=self.home.connection), quotas)

    def command(self, *arguments: str, exit_code: int = 0, shown: bool = True) -> None:
        """Run `quota-ops ARGUMENTS` in the repository; NotAsTold for another exit code."""
        self.narration.say(f"$ quota-ops {shlex.join(arguments)}", Tone.STRONG)
        ended = subprocess.run(
            [sys.executable, "-m", "quota_ops", *arguments],
            cwd=self.home.repository.root,
            env=_without_the_users_own() | self.home.environment,
            stdout=None if shown else subprocess.DEVNULL,
            check=False,
        )
        self.narration.show(line())
        expect(
            ended.returncode == exit_code,
            f"quota-ops {arguments[0]} ended with {ended.returncode}, not with {exit_code}",
        )

    def run_dag(self, dag_id: str, **params: Any) -> None:
        """Run a DAG to its end, and show its tasks; raises NotAsTold when it failed."""
        with self.narration.waiting(f"the DAG {dag_id} runs") as update:
            run = run_dag(self.airflow.result().api, dag_id, params, update)
        self.narration.table(TASKS, run.cells())
        expect(run.state == "success", f"the run of {dag_id} ended as {run.state}; {run.trouble}")

    def last_run(self) -> Report:
        """What the cluster's last run came to."""
        return read_report(find_run(RunStore(open_place(self.home.store)), f"demo/{LAST}"))


def _without_the_users_own() -> dict[str, str]:
    """The environment less what would lead to the user's clusters and run store."""
    return {name: value for name, value in os.environ.items() if not name.startswith("QUOTA_OPS_")}
