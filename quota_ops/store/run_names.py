"""Runs of a run store by the names that people give them, and by their order."""

from collections.abc import Sequence
from contextlib import suppress

from quota_ops.model.alteration import altered_keys
from quota_ops.model.errors import InvalidInput
from quota_ops.model.outcome import Status
from quota_ops.store.place import Place
from quota_ops.store.run_folder import ABOUT, ALTER, APPLIED, RunFolder, batch_file
from quota_ops.store.run_store import RunStore, open_place

LAST = "last"
_MAY_HAVE_WRITTEN = {Status.ACCEPTED, Status.UNKNOWN}


def find_run(store: RunStore, wanted: str, *, last_write: bool = False) -> RunFolder:
    """The run that a person means: `last`, an address, or a name or a part that no other has.

    CLUSTER/ before it looks among that cluster's runs alone. With `last_write`, `last` is the last
    run that wrote to a cluster. Raises InvalidInput when there is no such run, or more than one.
    """
    with suppress(InvalidInput):  # a text may be too long for a path
        if (named := RunFolder(open_place(wanted))).has(ABOUT):
            return named
    cluster, _, name = wanted.strip("/").rpartition("/")
    paths = store.runs(cluster or None)
    if name == LAST and paths:
        ordered = latest_first(paths)
        if found := next(filter(_has_written, ordered), None) if last_write else ordered[0]:
            return RunFolder(found)
    for meant in (
        [one for one in paths if one.name == name],
        [one for one in paths if one.name.startswith(name)],
        [one for one in paths if name in one.name],
    ):
        if len(meant) == 1:
            return RunFolder(meant[0])
        if meant:
            names = sorted(f"{one.parent.name}/{one.name}" for one in meant)
            more = f" and {len(names) - 5:,} more" if names[5:] else ""
            raise InvalidInput(
                f"{wanted!r} may be any of {len(names):,} runs: {', '.join(names[:5])}{more}",
                "Name one of them whole.",
            )
    raise InvalidInput(
        f"there is no run {wanted!r} in the run store {store.root}",
        "The runs are listed by: quota-ops runs",
    )


def latest_first(paths: Sequence[Place]) -> list[Place]:
    """Order runs by their numbers; those from before there were numbers come last, by name."""
    return sorted(paths, key=lambda path: (_number(path), path.name), reverse=True)


def _number(path: Place) -> int:
    with suppress(InvalidInput):
        return RunFolder(path).about()["sequence"] or 0
    return 0


def _has_written(path: Place) -> bool:
    """Whether a run changed its cluster, or may have; what is damaged may have."""
    folder = RunFolder(path)
    if not folder.has(APPLIED):
        return folder.has(batch_file(1))
    with suppress(InvalidInput):
        if folder.has(ALTER) and not folder.read_as(ALTER, altered_keys):
            return False
        return any(one.status in _MAY_HAVE_WRITTEN for one in folder.outcomes(APPLIED))
    return True
