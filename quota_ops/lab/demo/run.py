"""Runs the demo from the first step to the last, in a home that is removed at the end."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from quota_ops.lab.demo.lab import Home, Lab
from quota_ops.lab.demo.narration import Narration
from quota_ops.lab.demo.story import STEPS
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from quota_ops.report.outline.layout import Span, Tone, line
from quota_ops.store.run.files import PAGE

INTRODUCTION = (
    "A real Kafka, Spark and Airflow start on this machine, in a folder and on ports of their own. "
    "Then a cluster's quotas and Git change independently, and quota-ops reconciles them."
)
LAST_STEP = "Stop Airflow, Spark and Kafka"
NEXT = (
    ("quota-ops demo --keep FOLDER", "the same, but keeps its report pages, runs and ledger"),
    ("quota-ops up", "a broker and Airflow in the background, to explore"),
    ("desired_state/demo", "the desired state of this cluster: the format by example"),
    ("quota-ops init my-quotas", "your own repository"),
)


def run_demo(keep: Path | None) -> None:
    """Run the demo in a temporary home, or in a new folder `keep`, which it does not remove.

    Ends all its processes, even after an error. Raises InvalidInput when `keep` is not a new or
    empty folder outside every Git checkout; StoryFailed when a step has an unexpected result.
    """
    narration = Narration(steps=len(STEPS) + 2)
    with _home(keep) as home:
        _run_steps(home, narration, kept=keep is not None)
    narration.show_screen(line())
    narration.show_text("Every step succeeded, and nothing is left running.", Tone.OK)
    narration.show_times()
    if keep:
        narration.show_text("Report pages:", Tone.STRONG)
        for page in find_pages(keep):
            narration.show_text(str(page))
    following = (*_activation(), *(NEXT[1:] if keep else NEXT))
    rows = ((Span(what, Tone.STRONG), Span(why)) for what, why in following)
    narration.show_table(("next", ""), rows)


def find_pages(kept: Path) -> list[Path]:
    """Return the report pages of the runs in a folder that the demo kept, in order."""
    return sorted((kept / "store").rglob(str(PAGE)))


def _activation() -> Iterator[tuple[str, str]]:
    """Yield the command to activate a virtual environment whose `quota-ops` is not on the PATH."""
    script, here = Path(sys.prefix, "bin", "activate"), Path.cwd()
    if which("quota-ops") is None and script.exists():
        named = script.relative_to(here) if script.is_relative_to(here) else script
        yield f". {named}", "puts quota-ops on the PATH of this shell"


def _run_steps(home: Home, narration: Narration, *, kept: bool) -> None:
    narration.show_text(INTRODUCTION)
    if not kept:
        narration.show_text(
            f"Paths below {home.path} are removed at the end; --keep FOLDER keeps them."
        )
    home.repository.begin()
    with ExitStack() as parts:
        with narration.show_step("Start Kafka"):
            airflow = parts.enter_context(home.start_airflow())
            broker = parts.enter_context(_kafka(home, narration))
            narration.show_text(
                f"Apache Kafka {broker.config.version} runs at {broker.bootstrap()}, cluster id "
                f"{broker.config.cluster_id}. Airflow starts too, and takes longer."
            )
        lab = Lab(home, narration, airflow)
        for title, step in STEPS.items():
            with narration.show_step(title):
                step(lab)
        with narration.show_step(LAST_STEP), narration.show_wait("Stopping them"):
            parts.close()


def _kafka(home: Home, narration: Narration) -> RunningBroker:
    with narration.show_wait("Starting Kafka") as update:
        return home.start_kafka(lambda done, jars: update(f"{done} of {jars} jars fetched"))


@contextmanager
def _home(keep: Path | None) -> Iterator[Home]:
    if keep is None:
        with TemporaryDirectory(prefix="quota-ops-demo-", ignore_cleanup_errors=True) as folder:
            home = Home(Path(folder).resolve())
            home.check()
            yield home
        return
    home = Home(keep.resolve())
    home.check()
    if keep.exists() and any(keep.iterdir()):
        raise InvalidInput(f"{keep} is not empty", "Pass a new folder to --keep.")
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield home
