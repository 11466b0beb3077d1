"""Find a run by the name that a person gives, and order runs."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, groupby, islice, repeat
from typing import NamedTuple

from quota_ops.model.errors import InvalidInput
from quota_ops.model.text import counted, name_first
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, open_place, safe_name
from quota_ops.store.run.files import ABOUT, ALTER
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import AT_ONCE, runs_latest_first
from quota_ops.store.run.state import RunState

_log = logging.getLogger(__name__)
LAST = "last"
_ADDRESS = re.compile(r"/|~|\.\.?(/|$)|[a-z0-9]+://")
_LIST = "List the runs: quota-ops runs"


def find_run(
    store: RunStore, wanted: str, *, last_write: bool = False, own: str | None = None
) -> RunFolder:
    """Return the run for `last`, a name, a unique part of a name, or an address.

    A path needs a `/`. Unless it begins with `/`, `./`, `../` or `~`, runs of that name come first.

    With CLUSTER/ before it, a name or an id, only that cluster's runs count; `own` is as in
    `find_cluster`. With `last_write`, `last` is the last run that wrote to a cluster. Raises
    InvalidInput if no run or more than one matches, like `find_cluster`, and for a copy of a run.
    """
    if not wanted.strip():  # such as a variable of the shell that is not set
        raise InvalidInput("the name of the run is empty", _LIST)
    found = _find_run(store, wanted, last_write=last_write, own=own)
    found.refuse_copy()
    return found


def _find_run(store: RunStore, wanted: str, *, last_write: bool, own: str | None) -> RunFolder:
    if _ADDRESS.match(wanted):
        if found := _find_folder(wanted):
            return found
        raise InvalidInput(f"{wanted} is not a run folder: it has no {ABOUT}", _LIST)
    try:
        return _find_stored(store, wanted, last_write=last_write, own=own)
    except InvalidInput:
        if "/" in wanted and (found := _find_folder(wanted)):
            return found
        raise


def _find_folder(address: str) -> RunFolder | None:
    with suppress(InvalidInput):  # a text may be too long for a path
        if (found := RunFolder(open_place(address))).has(ABOUT):
            return found
    return None


def _find_stored(store: RunStore, wanted: str, *, last_write: bool, own: str | None) -> RunFolder:
    cluster, _, name = wanted.strip("/").rpartition("/")
    paths = list_runs_of(store, cluster or None)
    if name == LAST and paths:
        of = find_cluster(store, cluster, own).cluster_id if cluster else None

        def is_meant(run: Place) -> bool:
            return (not of or read_id(run) == of) and (not last_write or _has_written(run))

        if found := find_first(latest_first(store, paths), is_meant):
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
            raise InvalidInput(
                f"{wanted!r} matches {len(names):,} runs: {name_first(names, 5)}",
                "Use the full name of one.",
            )
    if name == LAST and paths and last_write:
        raise InvalidInput(
            f"no run in the run store {store.root} has written to a cluster",
            "There is nothing to roll back. List the runs: quota-ops runs",
        )
    remedy = _LIST
    if any(path.parent.name == wanted for path in paths):
        remedy = f"{wanted} is a cluster. For its last run: {wanted}/{LAST}"
    raise InvalidInput(f"there is no run {wanted!r} in the run store {store.root}", remedy)


def list_runs_of(store: RunStore, cluster: str | None) -> tuple[Place, ...]:
    """Return the runs of a cluster by its name or its id; of all clusters without one.

    Raises InvalidInput if the store has no run of that cluster, or cannot be listed.
    """
    try:
        return store.runs(cluster)
    except InvalidInput:
        runs = _list_runs_of_id(store, cluster)
        found = zip(runs, _read_ids(runs), strict=True)
        if own := tuple(run for run, cluster_id in found if cluster_id == cluster):
            return own
        raise


def _list_runs_of_id(store: RunStore, cluster_id: str | None) -> list[Place]:
    """Return the runs of every name that a cluster had; other clusters may have had it, too."""
    names = {name for name, of in store.list_names() if of == cluster_id}
    return [run for name in sorted(names) for run in (store.root / "runs" / name).folders()]


class NamedCluster(NamedTuple):
    """The cluster that a person named, by the name of its folder or by its cluster id."""

    names: tuple[str, ...]
    """The names that its runs have, that of the newest run first."""
    cluster_id: str | None = None
    """The id whose runs count; None if all runs of the name do."""

    def has(self, name: str, cluster_id: str | None) -> bool:
        """Return whether a run with this name and cluster id is one of the cluster."""
        return name in self.names and self.cluster_id in {None, cluster_id}

    def has_run(self, run: Place) -> bool:
        """Return whether a run is one of the cluster; a damaged one is, by its name alone."""
        is_named = run.parent.name in map(safe_name, self.names)
        return is_named and self.cluster_id in {None, read_id(run) or self.cluster_id}


def find_cluster(store: RunStore, named: str, own: str | None = None) -> NamedCluster:
    """Return the cluster of a name or an id. A text that is neither is a name without runs.

    If several clusters have the name, it is the one with the id `own`. Without that, raises
    InvalidInput like `_choose_id`; also if the store cannot be listed.
    """
    known = store.list_names()
    if len(list_ids(known, named)) > 1:
        return NamedCluster((named,), own or _choose_id(store, named, list_ids(known, named)))
    folders = {name for name, cluster_id in known if cluster_id == named}
    if not folders or store.runs_of(named).folders():
        return NamedCluster((named,), None)
    newest = next(latest_first(store, list_runs_of(store, named))).parent
    found = (newest, *(store.root / "runs" / name for name in sorted(folders - {newest.name})))
    return NamedCluster(tuple(filter(None, map(read_name, found))), named)


def find_names(store: RunStore, name: str, cluster_id: str) -> NamedCluster:
    """Return a cluster by its id, with the name of its folder and all those that it had before."""
    folders = {folder for folder, of in store.list_names() if of == cluster_id} - {safe_name(name)}
    earlier = (read_name(store.root / "runs" / folder) for folder in sorted(folders))
    return NamedCluster((name, *filter(None, earlier)), cluster_id)


def list_ids(known: Iterable[tuple[str, str]], cluster: str) -> tuple[str, ...]:
    """Return the cluster ids that runs of a name read, from `RunStore.list_names`."""
    return tuple(sorted(of for name, of in known if name == safe_name(cluster)))


def find_id(store: RunStore, cluster: NamedCluster) -> str | None:
    """Return the id of a cluster; None if no run of its name has reached a cluster.

    Raises InvalidInput if the store has no run of that name.
    """
    if cluster.cluster_id:
        return cluster.cluster_id
    (name,) = cluster.names
    ids = list_ids(store.list_names(), name)
    return ids[0] if ids or not store.runs(name) else None


def read_name(runs: Place) -> str | None:
    """Return the name of the cluster of a folder of runs; None if no run of it can be read."""
    for run in (run for run in map(RunFolder, runs.folders()) if run.has(ABOUT)):
        with suppress(InvalidInput):
            return str(run.about().cluster)
    return None


def _choose_id(store: RunStore, cluster: str, known: Sequence[str]) -> str:
    """Return the cluster id of the newest run of a name that is, or was, that of several clusters.

    The other ids are logged. Raises InvalidInput, with the ids, if the newest runs take turns: a
    cluster that was rebuilt has another id too, but after its first run under the new id, none has
    the old one.
    """
    newest = islice(latest_first(store, store.runs(cluster)), _RECENT)
    turns = [of for of, _ in groupby(of for of in _read_ids([*newest]) if of and of in known)]
    ids = list(dict.fromkeys((*turns, *known)))
    if len({*turns}) == len(turns) > 0:
        _log.warning(
            "%s is the cluster %s here. For earlier runs of that name, pass %s.",
            cluster,
            ids[0],
            " or ".join(ids[1:]),
        )
        return ids[0]
    raise InvalidInput(
        f"{cluster} is the name of {counted(len(ids), 'cluster')} in the run store "
        f"{store.root}: {', '.join(ids)}",
        f"Pass the id of one, for example {ids[0]}. To keep their runs apart, rename the "
        "folder of one in its repository, or use two run stores.",
    )


_RECENT = 50
"""How many of the newest runs of a name are compared by their cluster ids."""


def _read_ids(runs: Sequence[Place]) -> list[str | None]:
    """Return the cluster id of each run; None for one that is damaged, or read no cluster.yaml."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(read_id, runs))


def read_id(run: Place) -> str | None:
    """Return the cluster id of a run; None if it is damaged, or read no cluster.yaml."""
    with suppress(InvalidInput):
        return RunFolder(run).about().cluster_id
    return None


def find_last_write(store: RunStore, cluster_id: str, *, is_alter: bool) -> RunFolder | None:
    """Return the last run that wrote to a cluster: of its alters, or of those that wrote a plan.

    The folder of the cluster may have had another name.
    """

    def is_meant(run: Place) -> bool:
        is_kind = RunFolder(run).has(ALTER) is is_alter
        return is_kind and read_id(run) == cluster_id and _has_written(run)

    found = find_first(latest_first(store, _list_runs_of_id(store, cluster_id)), is_meant)
    return None if found is None else RunFolder(found)


def find_first(runs: Iterator[Place], is_meant: Callable[[Place], bool]) -> Place | None:
    """Return the first run that is meant: mostly the first of all, so it is read alone."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number in chain((1,), repeat(AT_ONCE)):
            if not (places := list(islice(runs, number))):
                return None
            for place, found in zip(places, pool.map(is_meant, places), strict=True):
                if found:
                    return place
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
