"""The list of runs, read from a few small files of each; a damaged run is still listed."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice, takewhile
from typing import Any, NamedTuple, Self, TypeVar

from quota_ops.model.alteration import count_altered
from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.report import STAGES, STOPPED, Life, RunSummary, StageStatus
from quota_ops.model.run import About, Outcomes
from quota_ops.model.tables import DIFFERENCES
from quota_ops.store.place import Place
from quota_ops.store.run_files import (
    ABOUT,
    ADOPTED,
    ALTER,
    APPLIED,
    APPROVAL,
    BATCH,
    PLAN,
    PRUNED,
    RELEASED,
    REPORT,
    STAGE,
    VERIFICATION,
    RunFile,
)
from quota_ops.store.run_folder import RunFolder
from quota_ops.store.run_marks import find_liveness, format_deadline
from quota_ops.store.run_names import latest_first, list_runs_of
from quota_ops.store.run_numbers import AT_ONCE
from quota_ops.store.run_store import RunStore

_ALTERED = "altered"
_ENDS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((ADOPTED,), "adopted"),
    ((RELEASED,), "released"),
    ((ALTER, APPLIED), _ALTERED),
    ((ALTER,), "not applied"),
    ((VERIFICATION,), "verified"),
    ((APPLIED,), "not read back"),
    ((BATCH.of(1),), "unfinished"),
    ((PLAN,), "planned"),
    ((DIFFERENCES.file,), "compared"),
)
"""The status of a run without a report, by the first of these artifacts that it has."""

Value = TypeVar("Value")


def list_runs(
    store: RunStore, cluster: str | None, most: int
) -> tuple[tuple[RunSummary, ...], int]:
    """Return the latest `most` runs, the newest first, and the number of further runs.

    `cluster` is a name or a cluster id. Raises InvalidInput if the store has no run of it.
    """
    runs = list_runs_of(store, cluster)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = tuple(pool.map(summarize_run, islice(latest_first(store, runs), most)))
    return found, len(runs) - len(found)


def summarize_run(place: Place) -> RunSummary:
    """Return the summary of a run; `trouble` names the files that cannot be read."""
    parts = _Parts.of(place)
    folder = parts.folder
    about = parts.find(ABOUT) or About("", place.parent.name, "")
    read = partial(folder.read_as, REPORT, _reported, before="rows")
    pruned = parts.find(PRUNED)
    interrupted = _End(*pruned.end) if pruned else _interrupted(parts)
    end = interrupted or parts.read(REPORT, read) or _without_report(parts)
    if not folder.has(ABOUT):
        parts.troubles.append(f"{ABOUT} is missing")
    return RunSummary(
        cluster=about.cluster,
        cluster_id=about.cluster_id,
        run=place.name,
        path=str(place),
        started=_started(folder),
        commit=about.commit,
        decisions=parts.read(APPROVAL, folder.decisions) or (),
        by=_read_author(folder) or about.by,
        size=parts.size,
        trouble="; ".join(dict.fromkeys(parts.troubles)) or None,
        **end._asdict(),
    )


def _read_author(folder: RunFolder) -> str | None:
    """Return who ran alter, adopt or release; None for another run or a damaged record."""
    with suppress(InvalidInput):
        return record.by if (record := folder.record()) else None
    return None


class _End(NamedTuple):
    """How a run ended; `prune` keeps this."""

    came_to: str
    sentence: str | None
    digest: str | None
    changes: int


@dataclass
class _Parts:
    """Reads a run's artifacts, and remembers which of them cannot be read."""

    folder: RunFolder
    size: int = 0
    """The bytes of the run; 0 if its folder cannot be listed."""
    troubles: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, place: Place) -> Self:
        """List the folder once; a request for each name would take long in an object store."""
        try:
            leaves = place.walk()
        except InvalidInput:
            return cls(RunFolder(place), troubles=["its folder cannot be listed"])
        names = frozenset(leaf.path for leaf in leaves)
        return cls(RunFolder(place, names=names), sum(leaf.size for leaf in leaves))

    def find(self, file: RunFile[Value]) -> Value | None:
        """Return the content of a file; None if it is missing or damaged."""
        return self.read(file, partial(self.folder.read, file))

    def read(self, name: str, read: Callable[[], Value]) -> Value | None:
        """Return the content of an artifact; None if it is missing or damaged."""
        if not self.folder.has(name):
            return None
        try:
            return read()
        except InvalidInput:
            self.troubles.append(f"{name} is damaged")
            return None


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


def _reported(values: dict[str, Any]) -> _End:
    answer, plan = values["answer"], values["plan"]
    return _End(
        str(answer["word"]),
        str(answer["sentence"]),
        plan and _digest(plan),
        int(values["counts"]["changed"] or 0),
    )


def _interrupted(parts: _Parts) -> _End | None:
    """Return the end of a run whose apply was cut off: its report is of an earlier attempt."""
    ended = parts.find(STAGE.of("apply"))
    if ended is None or ended.status not in {StageStatus.INTERRUPTED, StageStatus.NOT_ENDED}:
        return None
    is_ended = ended.status is StageStatus.INTERRUPTED
    came_to = Life.GONE if is_ended else find_liveness(parts.folder.place)
    outcomes = tuple(_outcomes_so_far(parts, is_ended=is_ended))
    keys: Counter[str] = Counter()
    for outcome in outcomes:
        keys[outcome.status.replace("_", " ")] += len(outcome.keys)
    counts = [f"{number:,} {status}" for status, number in keys.items()]
    if came_to is Life.UNKNOWN and (until := format_deadline(parts.folder.place)):
        counts.append(f"counts as running until {until}")
    sentence = ", ".join(counts)
    return _End(came_to.value, sentence, _plan_digest(parts), _changes(parts, outcomes))


def _outcomes_so_far(parts: _Parts, *, is_ended: bool) -> Iterator[Outcome]:
    """Yield the outcomes that a run has recorded, even if it has not sent everything."""
    folder = parts.folder
    by_batch = not is_ended and folder.has(BATCH.of(1))
    files: Iterable[RunFile[Outcomes]] = map(BATCH.of, count(1)) if by_batch else [APPLIED]
    for name in takewhile(folder.has, files):
        yield from parts.read(name, partial(folder.outcomes, name)) or ()


def _changes(parts: _Parts, outcomes: Iterable[Outcome]) -> int:
    if alter := parts.find(ALTER):
        return count_altered(alter.changing, outcomes)
    return sum(len(outcome.keys) for outcome in outcomes if outcome.was_written)


def _plan_digest(parts: _Parts) -> str | None:
    read = partial(parts.folder.read_as, PLAN, _digest, before="differences")
    return parts.read(PLAN, read)


def _without_report(parts: _Parts) -> _End:
    folder = parts.folder
    digest = _plan_digest(parts)
    outcomes = parts.read(APPLIED, partial(folder.outcomes, APPLIED)) or ()
    changes = _changes(parts, outcomes)
    for stage in (*STAGES, "adopt", "release"):
        ended = parts.find(STAGE.of(stage))
        if ended and ended.status in STOPPED:
            return _End(f"{stage} {ended.status}", ended.message, digest, changes)
    came_to = next((word for names, word in _ENDS if all(map(folder.has, names))), "unfinished")
    edit = parts.find(ADOPTED) or parts.find(RELEASED)
    if edit and not edit.rows:
        came_to = "nothing changed"
    if came_to == _ALTERED and outcomes and not changes:
        is_unknown = any(outcome.may_be_written for outcome in outcomes)
        came_to = "unknown" if is_unknown else "nothing changed"
    return _End(came_to, None, digest, changes)
