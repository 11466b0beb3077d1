"""The entities that other runs are writing now, found by the marks and folders of those runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.progress import ConcurrentWrite
from quota_ops.model.runs.stages import Life
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.marks import find_marked_runs
from quota_ops.store.run.names import read_id
from quota_ops.store.run.state import RunState

_OPEN = frozenset({Status.UNKNOWN, Status.NOT_SENT})
"""The outcomes of entities whose request is not sent yet, or has no response yet."""


def find_concurrent_writes(
    store: RunStore, cluster_id: str, accepts: Callable[[Entity], bool]
) -> tuple[ConcurrentWrite, ...]:
    """Return the writes of other runs to the accepted entities of a cluster.

    Skips runs that are damaged or dead, and returns no writes when the marks cannot be
    listed: the result is only a warning, which never stops a command.
    """
    found: list[ConcurrentWrite] = []
    with suppress(InvalidInput):
        marked = find_marked_runs(store.root)
        for run in (run for run in marked if read_id(run) == cluster_id):
            with suppress(InvalidInput, ValueError):
                name = f"{run.parent.name}/{run.name}"
                found += _find_writes(RunFolder(run), name, accepts)
    return tuple(found)


def _find_writes(
    run: RunFolder, name: str, accepts: Callable[[Entity], bool]
) -> Iterator[ConcurrentWrite]:
    state = RunState(run)
    if state.life is not Life.RUNNING:
        return
    for entity, is_sent in _find_open(state.outcomes).items():
        if accepts(Entity.parse(entity)):
            yield ConcurrentWrite(name, entity, is_sent)


def _find_open(outcomes: Iterable[Outcome]) -> dict[str, bool]:
    """Return the entities without a response, and whether their request was sent."""
    found: dict[str, bool] = {}
    for outcome in outcomes:
        if outcome.status in _OPEN:
            is_sent = outcome.status is Status.UNKNOWN
            found[outcome.entity] = found.get(outcome.entity, False) or is_sent
    return found
