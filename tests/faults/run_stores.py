"""A run store that is full, or damaged, at the moment when something is to be kept."""

from collections.abc import Callable, Sequence
from functools import partial

from tests.faults.filling import FULL, fill_at
from tests.faults.scene import BEFORE, Scene
from tests.faults.table import Seen, fault
from tests.faults.workers import COMMAND, PROCESSES


def full(scene: Scene, name: str) -> Seen:
    """Run as a process whose disk is full when it keeps a file, and again when there is room."""
    said = scene.lab.root / "said"
    doom: Callable[..., None] = partial(fill_at, name, said)
    command: Sequence[str] = COMMAND
    process = PROCESSES.Process(target=doom, args=(scene.lab.environment, command))
    process.start()
    process.join()
    assert process.exitcode == FULL
    assert not list(scene.lab.store.root.rglob("*.part"))
    return Seen(scene.holds(), scene.masked(said.read_text("utf-8")), scene.next_run())


@fault("plan", "disk of the run store full", quick=True)
def full_in_plan(scene: Scene) -> Seen:
    """Without a plan there is nothing to approve."""
    return full(scene, "plan.json")


@fault("apply", "disk full when the intent is noted in the ledger", quick=True)
def full_in_intent(scene: Scene) -> Seen:
    """What cannot be noted is not sent."""
    return full(scene, "00000002.parquet")


@fault("apply", "disk full when the second request is noted, before it is sent")
def full_in_outcomes(scene: Scene) -> Seen:
    """What cannot be noted is not sent; the ledger has the intent of what was."""
    return full(scene, "batch-0002.json")


@fault("verify", "disk full when the ledger is to hold what was read back")
def full_in_ledger(scene: Scene) -> Seen:
    """The intents stay until a run reads them back."""
    return full(scene, "00000003.parquet")


@fault("describe", "last file of the ledger cut short, as by a power cut", quick=True)
def damaged_ledger(scene: Scene) -> Seen:
    """A damaged ledger is no empty ledger: nothing is planned until it is moved aside."""
    last = max(scene.lab.ledger_folder.iterdir())
    damaged = last.with_name("00000002.parquet")
    damaged.write_bytes(last.read_bytes()[:100])
    said = scene.reconcile()
    damaged.unlink()
    assert scene.lab.known() == BEFORE
    return Seen(scene.holds(), said, scene.next_run())
