"""The runs of a run store, told from a few small files of each; none is too damaged to be named."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count, takewhile
from typing import Any, NamedTuple, TypeVar

from quota_ops.model.alteration import altered_keys, count_altered
from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome
from quota_ops.model.report import STAGES, STOPPED, PastRun, StageStatus
from quota_ops.model.tables import DIFFERENCES
from quota_ops.store.authors import read_author
from quota_ops.store.place import Place
from quota_ops.store.run_folder import (
    ABOUT,
    ADOPTED,
    ALTER,
    APPLIED,
    APPROVAL,
    PLAN,
    RELEASED,
    REPORT,
    VERIFIED,
    RunFolder,
    batch_file,
    stage_file,
)
from quota_ops.store.run_json import typed
from quota_ops.store.run_marks import Life, life
from quota_ops.store.run_names import latest_first
from quota_ops.store.run_store import RunStore

PRUNED = "pruned.json"
"""How a run ended, and when `prune` removed all but the records of it."""

_ALTERED = "altered"
_ENDS = (
    ((ADOPTED,), "adopted"),
    ((RELEASED,), "released"),
    ((ALTER, APPLIED), _ALTERED),
    ((ALTER,), "only asked"),
    ((VERIFIED,), "verified"),
    ((APPLIED,), "not read back"),
    ((batch_file(1),), "unfinished"),
    ((PLAN,), "planned"),
    ((DIFFERENCES.file,), "compared"),
)
"""What a run without a report has come to, by the first of these artefacts that it has."""

Told = TypeVar("Told")


def past_runs(store: RunStore, cluster: str | None, most: int) -> tuple[tuple[PastRun, ...], int]:
    """The latest runs, the last one first, `most` of them; and how many more there are.

    Raises InvalidInput when the store knows no run of that cluster.
    """
    runs = latest_first(store.runs(cluster))
    return tuple(map(past_run, runs[:most])), len(runs[most:])


def past_run(place: Place) -> PastRun:
    """What a run's folder tells at a glance; what cannot be read is its `trouble`."""
    folder = RunFolder(place)
    parts = _Parts(folder)
    about = parts.tell(ABOUT, folder.about) or {"cluster": place.parent.name, "commit": None}
    read = partial(folder.read_as, REPORT, _reported, before="rows")
    pruned = parts.tell(PRUNED, partial(folder.read_as, PRUNED, _pruned))
    interrupted = pruned or _interrupted(parts)
    end = interrupted or parts.tell(REPORT, read) or _without_report(parts)
    if not folder.has(ABOUT):
        parts.troubles.append(f"{ABOUT} is missing")
    return PastRun(
        cluster=about["cluster"],
        run=place.name,
        path=str(place),
        started=_started(folder),
        commit=about["commit"],
        decisions=parts.tell(APPROVAL, folder.decisions) or (),
        by=read_author(folder),
        size=folder.size(),
        trouble="; ".join(dict.fromkeys(parts.troubles)) or None,
        **end._asdict(),
    )


class _End(NamedTuple):
    """How a run ended; what `prune` keeps of it."""

    came_to: str
    sentence: str | None
    digest: str | None
    changes: int


@dataclass
class _Parts:
    """Reads a run's artefacts, and remembers which could not be read."""

    folder: RunFolder
    troubles: list[str] = field(default_factory=list)

    def tell(self, name: str, read: Callable[[], Told]) -> Told | None:
        """What an artefact says; None where it is missing or damaged."""
        if not self.folder.has(name):
            return None
        try:
            return read()
        except InvalidInput:
            self.troubles.append(f"{name} is damaged")
            return None


def _started(folder: RunFolder) -> str | None:
    """When a run started; of a damaged one by its name, where that says it."""
    with suppress(InvalidInput, ValueError):
        started = str(folder.about()["started"])
        datetime.fromisoformat(started)
        return started
    name = folder.place.name[:20]
    with suppress(ValueError):
        return iso_utc(datetime.strptime(name, "%Y-%m-%dT%H-%M-%SZ").replace(tzinfo=UTC))
    return None


def _digest(plan: dict[str, Any]) -> str:
    return str(typed(plan["digest"], str))


def _reported(values: dict[str, Any]) -> _End:
    answer, plan = values["answer"], values["plan"]
    return _End(
        typed(answer["word"], str),
        typed(answer["sentence"], str),
        plan and _digest(plan),
        typed(values["counts"]["changed"], int | None) or 0,
    )


def _pruned(values: dict[str, Any]) -> _End:
    return _End(*(typed(values[name], kind) for name, kind in _End.__annotations__.items()))


def _interrupted(parts: _Parts) -> _End | None:
    """What a run came to whose apply was cut off; its report is of an earlier attempt."""
    file = stage_file("apply")
    ended = parts.tell(file, partial(parts.folder.stage_result, "apply"))
    if ended is None or ended.status not in {StageStatus.INTERRUPTED, StageStatus.NOT_ENDED}:
        return None
    is_ended = ended.status is StageStatus.INTERRUPTED
    came_to = Life.GONE if is_ended else life(parts.folder.place)
    outcomes = tuple(_outcomes_so_far(parts, is_ended=is_ended))
    keys: Counter[str] = Counter()
    for one in outcomes:
        keys[one.status.replace("_", " ")] += len(one.keys)
    sentence = ", ".join(f"{number:,} {status}" for status, number in keys.items())
    return _End(came_to.value, sentence, _plan_digest(parts), _changes(parts, outcomes))


def _outcomes_so_far(parts: _Parts, *, is_ended: bool) -> Iterator[Outcome]:
    """The outcomes that a run has kept, whether or not it came to the end of its sending."""
    folder = parts.folder
    by_batch = not is_ended and folder.has(batch_file(1))
    files = map(batch_file, count(1)) if by_batch else [APPLIED]
    for name in takewhile(folder.has, files):
        yield from parts.tell(name, partial(folder.outcomes, name)) or ()


def _changes(parts: _Parts, outcomes: Iterable[Outcome]) -> int:
    altered = parts.tell(ALTER, partial(parts.folder.read_as, ALTER, altered_keys))
    if altered is not None:
        return count_altered(altered, outcomes)
    return sum(len(one.keys) for one in outcomes if one.was_written)


def _plan_digest(parts: _Parts) -> str | None:
    read = partial(parts.folder.read_as, PLAN, _digest, before="differences")
    return parts.tell(PLAN, read)


def _without_report(parts: _Parts) -> _End:
    folder = parts.folder
    digest = _plan_digest(parts)
    outcomes = parts.tell(APPLIED, partial(folder.outcomes, APPLIED)) or ()
    changes = _changes(parts, outcomes)
    for stage in (*STAGES, "adopt", "release"):
        ended = parts.tell(stage_file(stage), partial(folder.stage_result, stage))
        if ended and ended.status in STOPPED:
            return _End(f"{stage} {ended.status}", ended.message, digest, changes)
    came_to = next((word for names, word in _ENDS if all(map(folder.has, names))), "unfinished")
    for name in filter(folder.has, (ADOPTED, RELEASED)):
        if parts.tell(name, partial(folder.read_as, name, lambda left: not left["rows"])):
            came_to = "nothing changed"
    if came_to == _ALTERED and outcomes and not changes:
        is_unknown = any(one.may_be_written for one in outcomes)
        came_to = "unknown" if is_unknown else "nothing changed"
    return _End(came_to, None, digest, changes)
