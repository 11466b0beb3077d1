"""A run store that is full, or damaged, at the moment of a write."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.runs.run import Outcomes
from quota_ops.runs.chain import CHAINS, RESUMED
from quota_ops.stages import apply
from quota_ops.stages.apply import intent
from quota_ops.store import retention
from quota_ops.store.run.files import APPLIED, PLAN, RunFile
from quota_ops.store.run.folder import RunFolder
from tests.broker.test_decisions import approves
from tests.faults.filling import FULL, fill_at
from tests.faults.scene import AFTER, BEFORE, KEY, Scene
from tests.faults.table import Seen, fault
from tests.faults.workers import COMMAND, PROCESSES
from tests.places import on_disk


def full(scene: Scene, name: str) -> Seen:
    """Run as a process whose disk is full when it writes a file, and again when there is space."""
    said = scene.lab.root / "said"
    doom: Callable[..., None] = partial(fill_at, name, said)
    command: Sequence[str] = COMMAND
    process = PROCESSES.Process(target=doom, args=(scene.lab.environment, command))
    process.start()
    process.join()
    assert process.exitcode == FULL
    assert not list(on_disk(scene.lab.store.root).rglob("*.part"))
    return Seen(scene.holds(), scene.masked(said.read_text("utf-8")), scene.next_run())


@fault("plan", "disk of the run store full", quick=True)
def full_in_plan(scene: Scene) -> Seen:
    """Without a plan there is nothing to approve."""
    return full(scene, "plan.json")


@fault("apply", "disk full when the intent is noted in the ledger", quick=True)
def full_in_intent(scene: Scene) -> Seen:
    """An intent that cannot be recorded is not sent."""
    return full(scene, "00000002.parquet")


@fault("apply", "disk full when the second request is noted, before it is sent")
def full_in_outcomes(scene: Scene) -> Seen:
    """An intent that cannot be recorded is not sent; the ledger has the intents of sent rows."""
    return full(scene, "batch-0002.json")


@fault("verify", "disk full when the ledger records what was read back")
def full_in_ledger(scene: Scene) -> Seen:
    """The intents stay until a run reads them back."""
    return full(scene, "00000003.parquet")


@fault("apply", "a second installation with a run store of its own, which knows no earlier run")
def two_run_stores(scene: Scene) -> Seen:
    """What it did not write is taken over by a person alone; the first store then agrees."""
    lab = scene.lab
    other = replace(lab, address=str(lab.root / "second"))
    said = replace(scene, lab=other).reconcile(allow={})
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "prune listed the run before, and removes it when it was applied", quick=True)
def pruned_meanwhile(scene: Scene) -> Seen:
    """It keeps every file of a run that was resumed since: the run can be rolled back."""
    run, now = scene.lab.planned(), datetime.now(UTC)
    expired = retention.find_expired(scene.lab.store, now + timedelta(hours=1))
    before = [place.name for place in scene.lab.store.runs()]
    said = scene.go_on(run, RESUMED)
    failures = retention.remove(expired, now)
    assert [place.name for place in scene.lab.store.runs()] == before
    assert run.folder.has(PLAN)
    return Seen(scene.holds(), f"{said}; {len(failures)} run not removed", scene.next_run())


@fault("describe", "drafts of marks that a power cut has left in the run store", quick=True)
def drafts_left(scene: Scene) -> Seen:
    """They are no runs: nothing waits for them, and nothing settles them."""
    run = scene.lab.run("plan")
    marks = on_disk(scene.lab.store.root) / "at_work" / "demo"
    marks.mkdir(parents=True, exist_ok=True)
    drafts = [marks / f"{on_disk(run).name}.0a1b.part", marks / "other.part"]
    for draft in drafts:
        draft.write_bytes(b"")
    said = scene.reconcile()
    assert scene.lab.cli("runs").returncode == 0
    for draft in drafts:
        draft.unlink(missing_ok=True)
    return Seen(scene.holds(), said, scene.next_run())


def lose_intents(scene: Scene) -> None:
    """Lose the last file of the ledger, which a store has confirmed."""
    assert scene.lab.known(INTENDED)
    (scene.lab.records.ledger / max(scene.lab.records.ledger.list())).delete()


@fault("apply", "the run store confirms the intents, and loses them before the first request")
def intents_lost_in_apply(scene: Scene) -> Seen:
    """What must exist is looked for before each request."""

    def record_and_lose(*given: Any) -> Any:
        noted = intent.record_intents(*given)
        lose_intents(scene)
        return noted

    scene.patch.setattr(apply, "record_intents", record_and_lose)
    said = scene.reconcile()
    scene.patch.setattr(apply, "record_intents", intent.record_intents)
    return Seen(scene.holds(), said, scene.next_run())


@fault("apply", "the run store confirms the outcomes, and loses them", quick=True)
def outcomes_lost(scene: Scene) -> Seen:
    """Lost outcomes do not look as if nothing had been sent."""
    leave = RunFolder.leave_outcomes

    def leave_and_lose(folder: RunFolder, file: RunFile[Outcomes], *given: Any) -> None:
        leave(folder, file, *given)
        if file == APPLIED:
            (folder.place / file).delete()

    scene.patch.setattr(RunFolder, "leave_outcomes", leave_and_lose)
    said = scene.reconcile()
    scene.patch.setattr(RunFolder, "leave_outcomes", leave)
    return Seen(scene.holds(), said, scene.next_run())


@fault("verify", "the run store loses the intents of a run before they are read back", quick=True)
def intents_lost_before_verify(scene: Scene) -> Seen:
    """The run does not succeed, although every broker stores what it wrote."""
    run = scene.prepare(CHAINS["apply"])
    lose_intents(scene)
    said = scene.go_on(run, ("verify", "report"))
    return Seen(scene.holds(), said, scene.next_run())


@fault("describe", "last file of the ledger truncated, as by a power cut", quick=True)
def damaged_ledger(scene: Scene) -> Seen:
    """A damaged ledger is not an empty one: nothing is planned until it is moved aside."""
    last = max(on_disk(scene.lab.records.ledger).iterdir())
    damaged = last.with_name("00000002.parquet")
    damaged.write_bytes(last.read_bytes()[:100])
    said = scene.reconcile()
    damaged.unlink()
    assert scene.lab.known() == BEFORE
    return Seen(scene.holds(), said, scene.next_run())


@fault("describe", "run store restored from a copy older than the last run", quick=True)
def store_restored(scene: Scene) -> Seen:
    """Writes of the lost run match Git, and enter the ledger again."""
    store, copy = on_disk(scene.lab.store.root), scene.lab.root / "copy"
    shutil.copytree(store, copy)
    assert scene.reconcile() == "exit 0"
    shutil.rmtree(store)
    shutil.copytree(copy, store)
    said = scene.reconcile(allow={})
    assert scene.lab.known() == AFTER
    return Seen(scene.holds(), said, scene.next_run())


@fault(
    "apply",
    "an approval replayed after the cluster changed and returned to its earlier state",
    quick=True,
)
def approval_replayed(scene: Scene) -> Seen:
    """An approval counts once: the same digest needs another."""
    scene.lab.desire(AFTER, approval="always")
    said, digest = approved(scene)
    assert said == "exit 0"
    scene.lab.put({**{one: {KEY: None} for one in AFTER}, **BEFORE})
    again = scene.start(approve=digest)
    said = scene.go_on(again, CHAINS["reconcile"]).replace(digest[:8], "DIGEST")
    assert again.folder.read_json(PLAN)["digest"] == digest
    holds = scene.holds()
    scene.lab.desire(AFTER)
    ended, _ = approved(scene)
    return Seen(holds, said, f"{ended} after a new approval; {scene.next_run()}")


def approved(scene: Scene) -> tuple[str, str]:
    """Run a whole reconcile with an approved plan; return how it ended, and the digest."""
    folder = scene.start().folder
    agrees = approves(scene.lab, on_disk(folder).name)
    said = scene.go_on(scene.lab.resume(folder, request_decision=agrees), CHAINS["reconcile"])
    return said, str(folder.read_json(PLAN)["digest"])
