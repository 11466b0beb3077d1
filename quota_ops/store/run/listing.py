"""The list of runs, read from a few small files of each; a damaged run is still listed."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice, takewhile
from typing import Any, NamedTuple

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.runs.report import RunSummary
from quota_ops.model.runs.run import About
from quota_ops.model.runs.stages import STAGES, STOPPED, StageResult, StageStatus, name_end
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.places.written_by import OtherForm
from quota_ops.store.run.files import ABOUT, APPROVAL, BATCH, END, PLAN, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import latest_first, list_runs_of
from quota_ops.store.run.order import AT_ONCE
from quota_ops.store.run.state import Phase, RunState

ReadStatus = Callable[[RunFolder], tuple[str, str, int] | None]
"""Returns status, sentence and number of changes of a run; None if it does not look for them."""


def list_runs(
    store: RunStore, cluster: str | None, most: int, read_status: ReadStatus = lambda _: None
) -> tuple[tuple[RunSummary, ...], int]:
    """Return the latest `most` runs, the newest first, and the number of further runs.

    `cluster` is a name or a cluster id. `read_status` finds what the report of a run
    that recorded no end has. Raises InvalidInput if the store has no run of it.
    """
    runs = list_runs_of(store, cluster)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = tuple(
            pool.map(
                partial(summarize_run, read_status=read_status),
                islice(latest_first(store, runs), most),
            )
        )
    return found, len(runs) - len(found)


def summarize_run(place: Place, read_status: ReadStatus = lambda _: None) -> RunSummary:
    """Return the summary of a run; `trouble` names the files that cannot be read."""
    run, size, troubles = _open_run(place)
    folder = run.folder
    about = run.find(ABOUT) or About("", place.parent.name, "")
    end = _find_end(run, read_status)
    has_tried = end.changes or folder.has(BATCH.of(1))
    if not folder.has(ABOUT):
        troubles.append(f"{ABOUT} is missing")
    return RunSummary(
        cluster=about.cluster,
        cluster_id=about.cluster_id,
        run=place.name,
        path=str(place),
        started=_started(folder),
        commit=about.commit,
        decisions=run.read(APPROVAL, folder.decisions) or (),
        by=_read_author(folder) or about.by or (about.login if has_tried else None),
        size=size,
        trouble="; ".join(dict.fromkeys(troubles)) or None,
        **end._asdict(),
    )


def _read_author(folder: RunFolder) -> str | None:
    """Return who ran alter, adopt, release or rollback; None for any other or a damaged record."""
    with suppress(InvalidInput):
        return record.by if (record := folder.record() or folder.find(ROLLBACK)) else None
    return None


class _End(NamedTuple):
    """How a run ended."""

    status: str
    sentence: str | None
    digest: str | None
    changes: int
    stopped: str | None = None


def _open_run(place: Place) -> tuple[RunState, int, list[str]]:
    """Return a run, its size in bytes, and which of its files cannot be read, as they are found.

    Lists the folder once: a request for each name would take long in an object store.
    """
    folder, size, troubles = RunFolder(place), 0, list[str]()
    try:
        leaves = place.walk()
        folder = RunFolder(place, names=frozenset(leaf.path for leaf in leaves))
        size = sum(leaf.size for leaf in leaves)
    except InvalidInput:
        troubles.append("its folder cannot be listed")

    def note(name: str, damage: InvalidInput) -> None:
        how = "has another format" if isinstance(damage, OtherForm) else "is damaged"
        troubles.append(f"{name} {how}")

    return RunState(folder, note), size, troubles


def _started(folder: RunFolder) -> str | None:
    """Return when a run started; for a damaged run, from its name if possible."""
    with suppress(InvalidInput, ValueError):
        started = str(folder.about().started)
        datetime.fromisoformat(started)
        return started
    name = folder.place.name[:20]
    with suppress(ValueError):
        return iso_utc(datetime.strptime(name, "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=UTC))
    return None


def _digest(plan: dict[str, Any]) -> str:
    return str(plan["digest"])


def _read_end(run: RunState) -> _End | None:
    """Return how a run ended by its newest record; None if it has started over since.

    It has if apply or its last stage ended otherwise than in the record.
    """
    *_, newest = None, *takewhile(run.folder.has, map(END.of, count(1)))
    if newest is None or (end := run.find(newest)) is None:
        return None
    ran = [stage for stage in end.stages if stage.status is not StageStatus.NOT_RUN]
    if run.apply.status is not StageStatus.NOT_RUN and run.apply not in ran:
        return None
    if ran and run.stage(ran[-1].stage) != ran[-1]:
        return None
    digest = end.plan.digest if end.plan else None
    has_plan = end.plan is not None or run.folder.has(PLAN)  # the end of an alter has none
    stop = _describe_stop(run, end.stages, has_plan=has_plan)
    return _End(end.answer.status, end.answer.sentence, digest, end.changed, stop)


def _find_end(run: RunState, read_status: ReadStatus) -> _End:
    """Return how a run ended; without a record, what its report says, or how far the run got.

    What stopped it is left out if its writes were cut off, which is its status.
    """
    is_cut_off = run.phase in {Phase.WRITING, Phase.INTERRUPTED}
    if end := _read_end(run):
        return end._replace(stopped=None) if is_cut_off else end
    digest = run.read(PLAN, partial(run.folder.read_as, PLAN, _digest))
    found = None if run.phase is Phase.PRUNED else read_status(run.folder)
    status, sentence, changes = found or (run.phase, None, len(run.written))
    if is_cut_off:
        return _End(status, sentence, digest, changes)
    ended = [run.stage(stage) for stage in (*STAGES, "adopt", "release")]
    stopped = next((stage for stage in ended if stage.status in STOPPED), None)
    sentence = (stopped and stopped.message) or sentence
    return _End(
        status, sentence, digest, changes, _describe_stop(run, ended, has_plan=digest is not None)
    )


def _describe_stop(run: RunState, stages: Iterable[StageResult], *, has_plan: bool) -> str | None:
    """Return how the first stage that stopped ended; None if none did."""
    for stage in stages:
        if (stage.stage, stage.status) == ("plan", StageStatus.REFUSED) and has_plan:
            return "blocked by guards"
        if stage.status in STOPPED:
            applied = run.outcomes if stage.stage == "apply" else ()
            return f"{stage.stage} {name_end(stage, applied)}"
    return None
