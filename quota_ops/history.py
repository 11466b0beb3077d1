"""The runs of a run store, told from a few small files of each; none is too damaged to be named."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from quota_ops.at_work import Life, life
from quota_ops.authors import read_author
from quota_ops.model.errors import InvalidInput
from quota_ops.model.history import PastRun
from quota_ops.model.moment import iso_utc
from quota_ops.model.outcome import Outcome, Status
from quota_ops.model.report import STAGES, STOPPED, StageStatus
from quota_ops.model.tables import DIFFERENCES
from quota_ops.run_folder import (
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
from quota_ops.run_json import typed
from quota_ops.run_store import RunStore

LAST = "last"
_MAY_HAVE_WRITTEN = {Status.ACCEPTED, Status.UNKNOWN}
PRUNED = "pruned.json"
"""How a run ended, and when `prune` removed all but the records of it."""

_ENDS = (
    ((ADOPTED,), "adopted"),
    ((RELEASED,), "released"),
    ((ALTER, APPLIED), "altered"),
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
    paths = _latest_first(store.runs(cluster))
    return tuple(map(past_run, paths[:most])), len(paths[most:])


def find_run(store: RunStore, wanted: str, *, last_write: bool = False) -> RunFolder:
    """The run that a person means: `last`, a path, or a name or the part of one that no other has.

    CLUSTER/ before it looks among that cluster's runs alone. With `last_write`, `last` is the last
    run that wrote to a cluster. Raises InvalidInput when there is no such run, or more than one.
    """
    with suppress(OSError):  # a text may be too long for a path
        if (path := Path(wanted)).joinpath(ABOUT).exists():
            return RunFolder(path.absolute())
    cluster, _, name = wanted.strip("/").rpartition("/")
    paths = store.runs(cluster or None)
    if name == LAST and paths:
        ordered = _latest_first(paths)
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


def finished(folder: RunFolder) -> str:
    """When a run wrote its last artefact, as ISO 8601 in UTC."""
    last = max(one.stat().st_mtime for one in (folder.path, *folder.path.iterdir()))
    return iso_utc(datetime.fromtimestamp(last, UTC))


def past_run(path: Path) -> PastRun:
    """What a run's folder tells at a glance; what cannot be read is its `trouble`."""
    folder = RunFolder(path)
    parts = _Parts(folder)
    about = parts.tell(ABOUT, folder.about) or {"cluster": path.parent.name, "commit": None}
    read = partial(folder.read_as, REPORT, _reported, before="rows")
    pruned = parts.tell(PRUNED, partial(folder.read_as, PRUNED, _pruned))
    interrupted = pruned or _interrupted(parts)
    end = interrupted or parts.tell(REPORT, read) or _without_report(parts)
    if not folder.has(ABOUT):
        parts.troubles.append(f"{ABOUT} is missing")
    return PastRun(
        cluster=about["cluster"],
        run=path.name,
        path=str(path),
        started=_started(path),
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


def _latest_first(paths: Sequence[Path]) -> list[Path]:
    """By their numbers; runs from before there were numbers come last, by their names."""
    return sorted(paths, key=lambda path: (_number(path), path.name), reverse=True)


def _number(path: Path) -> int:
    about = _Parts(RunFolder(path)).tell(ABOUT, RunFolder(path).about)
    return (about and about["sequence"]) or 0


def _has_written(path: Path) -> bool:
    """Whether a run wrote to its cluster, or may have; what is damaged may have."""
    folder = RunFolder(path)
    if not folder.has(APPLIED):
        return folder.has(batch_file(1))
    with suppress(InvalidInput):
        return any(one.status in _MAY_HAVE_WRITTEN for one in folder.outcomes(APPLIED))
    return True


def _started(path: Path) -> str:
    with suppress(InvalidInput, ValueError):
        started = str(RunFolder(path).about()["started"])
        datetime.fromisoformat(started)
        return started
    return iso_utc(datetime.fromtimestamp(path.stat().st_mtime, UTC))


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
    came_to = Life.GONE if is_ended else life(parts.folder.path)
    outcomes = tuple(_outcomes_so_far(parts, is_ended=is_ended))
    keys: Counter[str] = Counter()
    for one in outcomes:
        keys[one.status.replace("_", " ")] += len(one.keys)
    sentence = ", ".join(f"{number:,} {status}" for status, number in keys.items())
    return _End(came_to.value, sentence, _plan_digest(parts), _changes(outcomes))


def _outcomes_so_far(parts: _Parts, *, is_ended: bool) -> Iterator[Outcome]:
    """The outcomes that a run has kept, whether or not it came to the end of its sending."""
    folder = parts.folder
    by_batch = not is_ended and folder.has(batch_file(1))
    files = map(batch_file, count(1)) if by_batch else [APPLIED]
    for name in takewhile(folder.has, files):
        yield from parts.tell(name, partial(folder.outcomes, name)) or ()


def _changes(outcomes: Iterable[Outcome]) -> int:
    return sum(len(one.keys) for one in outcomes if one.was_written)


def _plan_digest(parts: _Parts) -> str | None:
    read = partial(parts.folder.read_as, PLAN, _digest, before="differences")
    return parts.tell(PLAN, read)


def _without_report(parts: _Parts) -> _End:
    folder = parts.folder
    digest = _plan_digest(parts)
    changes = _changes(parts.tell(APPLIED, partial(folder.outcomes, APPLIED)) or ())
    for stage in (*STAGES, "adopt", "release"):
        ended = parts.tell(stage_file(stage), partial(folder.stage_result, stage))
        if ended and ended.status in STOPPED:
            return _End(f"{stage} {ended.status}", ended.message, digest, changes)
    came_to = next((word for names, word in _ENDS if all(map(folder.has, names))), "unfinished")
    return _End(came_to, None, digest, changes)
