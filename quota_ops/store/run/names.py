"""Find a run by the name that a person gives, and order runs."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby, islice

from quota_ops.model.errors import InvalidInput
from quota_ops.model.text import counted
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import ABOUT, ALTER
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import AT_ONCE, runs_latest_first
from quota_ops.store.run.state import RunState

LAST = "last"
_ADDRESS = re.compile(r"/|~|\.\.?/|[a-z0-9]+://")
_LIST = "List the runs: quota-ops runs"


def find_run(store: RunStore, wanted: str, *, last_write: bool = False) -> RunFolder:
    """Return the run for `last`, an address, a name, or a unique part of a name.

    With CLUSTER/ before it, a name or an id, only that cluster's runs count. With `last_write`,
    `last` is the last run that wrote to a cluster. Raises InvalidInput if no run or more than one
    matches, for the last run of a name that is that of two clusters, and for a copy of a run.
    """
    found = _find_run(store, wanted, last_write=last_write)
    found.refuse_copy()
    return found


def _find_run(store: RunStore, wanted: str, *, last_write: bool) -> RunFolder:
    with suppress(InvalidInput):  # a text may be too long for a path
        if (named := RunFolder(open_place(wanted))).has(ABOUT):
            return named
    if _ADDRESS.match(wanted):
        raise InvalidInput(f"{wanted} is not a run folder: it has no {ABOUT}", _LIST)
    cluster, _, name = wanted.strip("/").rpartition("/")
    paths = list_runs_of(store, cluster or None)
    if name == LAST and paths:
        if cluster:
            refuse_ambiguous(store, cluster, paths)
        ordered = latest_first(store, paths)
        if found := next(filter(_has_written, ordered) if last_write else ordered, None):
            return RunFolder(found)
    for meant in (
        [path for path in paths if path.name == name],
        [path for path in paths if path.name.startswith(name)],
        [path for path in paths if name in path.name],
    ):
        if len(meant) == 1:
            return RunFolder(meant[0])
        if meant:
            names = sorted(f"{place.parent.name}/{place.name}" for place in meant)
            more = f" and {len(names) - 5:,} more" if names[5:] else ""
            raise InvalidInput(
                f"{wanted!r} may be any of {len(names):,} runs: {', '.join(names[:5])}{more}",
                "Use the full name of one.",
            )
    if name == LAST and paths:
        raise InvalidInput(
            f"no run in the run store {store.root} has written to a cluster",
            "There is nothing to roll back. List the runs: quota-ops runs",
        )
    raise InvalidInput(f"there is no run {wanted!r} in the run store {store.root}", _LIST)


def list_runs_of(store: RunStore, cluster: str | None) -> tuple[Place, ...]:
    """Return the runs of a cluster by its name or its id; of all clusters without one.

    Raises InvalidInput if the store has no run of that cluster, or cannot be listed.
    """
    try:
        return store.runs(cluster)
    except InvalidInput:
        runs = store.runs()
        ids = _read_ids(runs)
        if found := tuple(run for run, of in zip(runs, ids, strict=True) if of == cluster):
            return found
        raise


def find_cluster(store: RunStore, named: str) -> tuple[str, str | None]:
    """Return the name of a cluster by its name or its id; and the id, if that was given.

    Any other text counts as a name without runs. Raises InvalidInput like `refuse_ambiguous`.
    """
    try:
        runs = list_runs_of(store, named)
    except InvalidInput:
        return named, None
    if store.runs_of(named) == runs[0].parent:
        refuse_ambiguous(store, named, runs)
        return named, None
    return RunFolder(runs[0]).about().cluster, named


def find_newest_id(store: RunStore, cluster: str) -> str | None:
    """Return the cluster id of the newest run of a name. Raises like `list_runs_of`."""
    return next(filter(None, map(_read_id, latest_first(store, store.runs(cluster)))), None)


def refuse_ambiguous(store: RunStore, cluster: str, runs: Sequence[Place]) -> None:
    """Raise InvalidInput if the name of a cluster is that of several: see `find_sharing_ids`."""
    if ids := find_sharing_ids(store, runs):
        raise InvalidInput(
            f"{cluster} is the name of {counted(len(ids), 'cluster')} in the run store "
            f"{store.root}: {', '.join(ids)}",
            f"Pass the id of one, for example {ids[0]}. To keep their runs apart, rename the "
            "folder of one in its repository, or use two run stores.",
        )


def find_sharing_ids(store: RunStore, runs: Sequence[Place]) -> tuple[str, ...]:
    """Return the ids of several clusters that share a name, because their newest runs take turns.

    Empty if they do not. A cluster that was rebuilt has another id too, but after its first run
    under the new id, none has the old one.
    """
    newest = list(islice(latest_first(store, runs), _RECENT))
    if len({run.parent for run in newest}) != 1:
        return ()  # the name is an id, or these are the runs of the whole store
    turns = [of for of, _ in groupby(filter(None, _read_ids(newest)))]
    ids = dict.fromkeys(turns)
    return tuple(ids) if len(ids) < len(turns) else ()


_RECENT = 50
"""How many of the newest runs of a name are compared by their cluster ids."""


def _read_ids(runs: Sequence[Place]) -> list[str | None]:
    """Return the cluster id of each run; None for one that is damaged, or read no cluster.yaml."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(_read_id, runs))


def _read_id(run: Place) -> str | None:
    with suppress(InvalidInput):
        return RunFolder(run).about().cluster_id
    return None


def find_last_planned_write(store: RunStore, cluster: str, cluster_id: str) -> str | None:
    """Return CLUSTER/RUN of the last run that wrote a plan to a cluster, without any `alter`."""
    for path in latest_first(store, store.runs(cluster)):
        is_own = _read_id(path) == cluster_id
        if is_own and not RunFolder(path).has(ALTER) and _has_written(path):
            return f"{cluster}/{path.name}"
    return None


def latest_first(store: RunStore, paths: Sequence[Place]) -> Iterator[Place]:
    """Yield runs by number, the newest first. Runs with a damaged number come last.

    Numbers are read from the store's sequence, so that a few runs are found without reading all.
    """
    left = {f"{path.parent.name}/{path.name}": path for path in paths}
    for run in islice(runs_latest_first(store.sequence), len(paths)):
        if run in left:
            yield left.pop(run)
    yield from sorted(left.values(), key=lambda path: (read_number(path), path.name), reverse=True)


def read_number(path: Place) -> int:
    """Return the number of a run; 0 if its run.json is damaged."""
    with suppress(InvalidInput):
        return RunFolder(path).about().sequence or 0
    return 0


def _has_written(path: Place) -> bool:
    """Return whether a run changed its cluster or may have; a damaged one may have."""
    with suppress(InvalidInput):
        return RunState(RunFolder(path)).may_have_written
    return True
