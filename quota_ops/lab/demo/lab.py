"""The actions of the demo: commands, DAG runs, and changes outside Git."""

import os
import shlex
import subprocess
import sys
from concurrent.futures import Future
from typing import Any

from msgspec import Struct

from quota_ops.kafka.connection import find_connection
from quota_ops.lab.airflow.server import RunningAirflow
from quota_ops.lab.demo import month
from quota_ops.lab.demo.by_hand import ByHand, set_by_hand
from quota_ops.lab.demo.dag_run import TASKS, run_dag
from quota_ops.lab.demo.home import Home
from quota_ops.lab.demo.narration import Narration
from quota_ops.lab.process import read_end
from quota_ops.model.errors import ClusterTrouble, Refused
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.formats import duration
from quota_ops.report.outline.layout import Tone, line
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.names import LAST, find_run


class StoryFailed(Refused):
    """A step of the demo did not have the result that its text describes."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"the demo failed: {message}",
            "If the machine was busy, run it again. With --keep FOLDER, runs and logs are kept.",
        )


def expect(claim: object, otherwise: str) -> None:
    """Raise StoryFailed with the message `otherwise` if the claim is false."""
    if not claim:
        raise StoryFailed(otherwise)


class Lab(Struct, frozen=True):
    """The home of the demo, its narration, and the Airflow that is starting."""

    home: Home
    narration: Narration
    airflow: Future[RunningAirflow]

    def set_by_hand(self, *quotas: ByHand) -> None:
        """Change quotas of the cluster outside Git."""
        set_by_hand(find_connection("demo", file=self.home.connection), quotas)

    def run_command(self, *arguments: str, exit_code: int = 0, shown: bool = True) -> None:
        """Run `quota-ops ARGUMENTS` in the repository. Raises StoryFailed for another exit code."""
        self.narration.show_text(f"$ quota-ops {shlex.join(arguments)}", Tone.STRONG)
        ended = subprocess.run(
            [sys.executable, "-m", "quota_ops", *arguments],
            cwd=self.home.repository.root,
            env=_copy_environment() | self.home.environment,
            stdout=None if shown else subprocess.DEVNULL,
            check=False,
        )
        self.narration.show_screen(line())
        expect(
            ended.returncode == exit_code,
            f"quota-ops {arguments[0]} exited with {ended.returncode}, not {exit_code}",
        )

    def play_month(self) -> None:
        """Run quota-ops daily for a month before today. Raises StoryFailed if a run fails."""
        with self.narration.show_wait("Playing the month") as update:
            playing = subprocess.Popen(
                [sys.executable, "-m", month.__name__],
                cwd=self.home.repository.root,
                env=_copy_environment() | self.home.environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            with playing:
                for day in playing.stdout or ():
                    update(day.strip())
        expect(playing.returncode == 0, "a run of the month failed")

    def run_dag(self, dag_id: str, **params: Any) -> None:
        """Run a DAG to its end and show its tasks. Raises StoryFailed when the run fails."""
        with self.narration.show_wait(f"Running the DAG {dag_id}") as update:
            airflow = self.airflow.result()
            try:
                run = run_dag(airflow.api, dag_id, params, update)
            except ClusterTrouble as trouble:
                raise StoryFailed(f"{trouble.message}\n{read_end(airflow.log)}") from trouble
        self.narration.show_table(TASKS, run.cells())
        if run.verified is not None:
            took = f"Verified {duration(run.verified)} after the trigger, with a warm Spark."
            self.narration.show_text(took)
        expect(run.state == "success", f"the run of {dag_id} is {run.state}; {run.trouble}")

    def read_last_run(self) -> Report:
        """Return the report of the cluster's last run."""
        return read_report(find_run(RunStore(open_place(self.home.store)), f"demo/{LAST}"))


def _copy_environment() -> dict[str, str]:
    """Return the environment without the variables for the user's clusters and run store."""
    return {name: value for name, value in os.environ.items() if not name.startswith("QUOTA_OPS_")}
