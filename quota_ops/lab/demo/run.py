"""The demo from its first step to its last, in a home that is gone afterwards."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from types import FrameType

from quota_ops.lab.demo.home import Home
from quota_ops.lab.demo.lab import Lab
from quota_ops.lab.demo.narration import Narration
from quota_ops.lab.demo.story import STEPS
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import InvalidInput
from quota_ops.report.screen import Span, Tone, line
from quota_ops.store.run_folder import PAGE

INTRODUCTION = (
    "A real Kafka and a real Airflow start on this machine, in a folder and on ports of their own. "
    "Then the quotas of a cluster and Git go their own ways, and quota-ops brings them together."
)
NEXT = (
    ("quota-ops demo --keep FOLDER", "the same, and its report pages, runs and ledger stay"),
    ("quota-ops up", "a broker and Airflow in the background, to click through"),
    ("desired_state/demo", "what this cluster was brought to: the format, by example"),
    ("quota-ops init my-quotas", "a repository of your own"),
)


def run_demo(keep: Path | None = None) -> None:
    """Tell the story in a temporary home, or in a new folder `keep`, which then stays.

    Leaves no process behind, however it ends. Raises InvalidInput when `keep` is not a new or empty
    folder outside every Git checkout; NotAsTold when a step did not end as it should.
    """
    narration = Narration(steps=len(STEPS) + 2)
    with _signals_that_end(), _home(keep) as home:
        _tell_story(home, narration, kept=keep is not None)
    narration.show(line())
    narration.say("All went as told, and nothing is left running.", Tone.OK)
    narration.times()
    if keep:
        narration.say("Report pages:", Tone.STRONG)
        for page in sorted((keep / "store").rglob(PAGE)):
            narration.say(str(page))
    following = (*_activation(), *(NEXT[1:] if keep else NEXT))
    rows = ((Span(what, Tone.STRONG), Span(why)) for what, why in following)
    narration.table(("what to look at next", ""), rows)


def _activation() -> Iterator[tuple[str, str]]:
    """How a shell finds `quota-ops` that was started by its path in a virtual environment."""
    script, here = Path(sys.prefix, "bin", "activate"), Path.cwd()
    if which("quota-ops") is None and script.exists():
        named = script.relative_to(here) if script.is_relative_to(here) else script
        yield f". {named}", "then this shell finds quota-ops"


def _tell_story(home: Home, narration: Narration, *, kept: bool) -> None:
    narration.say(INTRODUCTION)
    if not kept:
        narration.say(
            f"Paths below {home.path} are removed when it ends; --keep FOLDER keeps them."
        )
    home.repository.begin()
    with ExitStack() as parts:
        with narration.step("Start Kafka"):
            airflow = parts.enter_context(home.airflow_beside())
            broker = parts.enter_context(_kafka(home, narration))
            narration.say(
                f"Apache Kafka {broker.config.version} answers at {broker.bootstrap()}, cluster id "
                f"{broker.config.cluster_id}. Airflow starts beside it and takes longer."
            )
        lab = Lab(home, narration, airflow)
        for title, step in STEPS.items():
            with narration.step(title):
                step(lab)
        with narration.step("Stop Airflow and Kafka"), narration.waiting("they stop"):
            parts.close()


def _kafka(home: Home, narration: Narration) -> RunningBroker:
    with narration.waiting("Kafka starts") as update:
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
        raise InvalidInput(f"{keep} is not empty", "Give --keep a new folder.")
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield home


@contextmanager
def _signals_that_end() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the demo by its clean-up, as Ctrl-C does."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {one: signal.signal(one, end) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, kept in before.items():
            signal.signal(number, kept)
