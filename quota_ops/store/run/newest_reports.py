"""The newest report of each cluster, as run.json and report.json have it."""

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from quota_ops.model.errors import InvalidInput
from quota_ops.model.runs.stages import StageStatus
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, safe_name
from quota_ops.store.run.files import REPORT
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import latest_first, read_id, read_name
from quota_ops.store.run.order import runs_latest_first

Json = Mapping[str, Any]
_TO_COMPARE = frozenset({"check", "describe", "diff", "plan"})
"""The stages that compare a cluster with Git."""
_EACH = 20
"""How many of the newest runs of all clusters are read for each cluster before its own are."""


def list_clusters(store: RunStore) -> list[str]:
    """Return the names of the clusters that have runs.

    Raises InvalidInput if they cannot be listed.
    """
    return sorted(filter(None, map(read_name, (store.root / "runs").folders())))


def read_newest_reports(
    store: RunStore,
    clusters: Iterable[str],
    *,
    compared: bool = False,
    cluster_id: str | None = None,
) -> dict[str, Json | None]:
    """Return the newest report.json of a run that `compared` each cluster with Git, or tried to.

    With a cluster id, only its runs count. None for a cluster that has no such run, or where this
    file is damaged. Reports of rollbacks and of `verify` are left out, and so are runs without a
    report. Raises InvalidInput if the store cannot be listed.
    """
    names = {safe_name(cluster): cluster for cluster in clusters}
    read = partial(_read, compared=compared, cluster_id=cluster_id)
    found: dict[str, Json | None] = {}
    newest = islice(runs_latest_first(store.sequence), _EACH * len(names))
    for folder, _, run in (path.partition("/") for path in newest):
        if folder in names and folder not in found:
            found.update(read(folder, store.root / "runs" / folder / run))
        if len(found) == len(names):
            break
    for folder in names.keys() - found:
        runs = latest_first(store, (store.root / "runs" / folder).folders())
        each = (read(folder, run) for run in runs)
        found.update(next(filter(None, each), {}))
    return {name: found.get(folder) for folder, name in names.items()}


def _read(
    folder: str, place: Place, *, compared: bool, cluster_id: str | None
) -> dict[str, Json | None]:
    """Return the report of a run by the folder of its cluster; empty if it does not count."""
    run = RunFolder(place)
    if not run.has(REPORT) or cluster_id not in {None, read_id(place)}:
        return {}
    try:
        report, counts = run.read_as(
            REPORT, lambda report: (report, _counts(report, compared=compared))
        )
    except InvalidInput:
        return {folder: None}
    return {folder: report} if counts else {}


def _counts(report: Json, *, compared: bool) -> bool:
    ends = {stage["stage"]: stage["status"] for stage in report["stages"]}
    ran = {stage for stage, status in ends.items() if status != StageStatus.NOT_RUN}
    stopped = {stage for stage in ran if ends[stage] != StageStatus.DONE}
    if compared and report["plan"] is None:
        return False
    return report["rollback"] is None and bool(ran & {"diff", "plan"} or stopped & _TO_COMPARE)
