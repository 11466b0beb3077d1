"""The runs of a run store, told from a few small files of each; none is too damaged to be named."""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from quota_ops.model.approval import Decision
from quota_ops.model.errors import InvalidInput
from quota_ops.model.history import PastRun
from quota_ops.model.outcome import Status
from quota_ops.model.report import STAGES, StageResult, StageStatus
from quota_ops.model.tables import DIFFERENCES
from quota_ops.run_folder import ABOUT, APPLIED, APPROVAL, PLAN, REPORT, RunFolder
from quota_ops.run_json import outcomes_from_json, typed
from quota_ops.run_store import RunStore

LAST = "last"

_ENDS = (
    (("adopted.json",), "adopted"),
    (("released.json",), "released"),
    (("alter.json", APPLIED), "altered"),
    (("alter.json",), "only asked"),
    ((APPLIED,), "not read back"),
    (("batch-0001.json",), "unfinished"),
    ((PLAN,), "planned"),
    ((DIFFERENCES.file,), "compared"),
)
"""What a run without a report has come to, by the first of these artefacts that it has."""

_ERRORS = (AttributeError, KeyError, OSError, TypeError, ValueError)

Told = TypeVar("Told")


def past_runs(store: RunStore, cluster: str | None, most: int) -> tuple[tuple[PastRun, ...], int]:
    """The latest runs, the last one first, `most` of them; and how many more there are.

    Raises InvalidInput when the store knows no run of that cluster.
    """
    paths = _latest_first(store.runs(cluster))
    return tuple(map(past_run, paths[:most])), len(paths[most:])


def find_run(store: RunStore, wanted: str) -> RunFolder:
    """The run that a person means: `last`, a path, or a name or the part of one that no other has.

    CLUSTER/ before it looks among that cluster's runs alone. Raises InvalidInput when there is
    no such run, or more than one.
    """
    with suppress(OSError):  # a text may be too long for a path
        if (path := Path(wanted)).joinpath(ABOUT).exists():
            return RunFolder(path.absolute())
    cluster, _, name = wanted.strip("/").rpartition("/")
    paths = store.runs(cluster or None)
    if name == LAST and paths:
        return RunFolder(_latest_first(paths)[0])
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
    return _moment(last)


def past_run(path: Path) -> PastRun:
    """What a run's folder tells at a glance; what cannot be read is its `trouble`."""
    parts = _Parts(path)
    nothing: tuple[str, str | None] = path.parent.name, None
    cluster, commit = parts.tell(ABOUT, _about, nothing)
    end = parts.tell(REPORT, _reported, None, rows="rows") or _without_report(parts)
    if not parts.has(ABOUT):
        parts.troubles.append(f"{ABOUT} is missing")
    return PastRun(
        cluster=cluster,
        run=path.name,
        path=str(path),
        started=_started(path),
        commit=commit,
        decisions=parts.tell(APPROVAL, _decisions, ()),
        trouble="; ".join(parts.troubles) or None,
        **end._asdict(),
    )


class _End(NamedTuple):
    came_to: str
    sentence: str | None
    digest: str | None
    changes: int


@dataclass
class _Parts:
    """Reads a run's files, and remembers what could not be read."""

    path: Path
    troubles: list[str] = field(default_factory=list)

    def tell(
        self,
        name: str,
        parse: Callable[[dict[str, Any]], Told],
        otherwise: Told,
        rows: str | None = None,
    ) -> Told:
        """What a JSON artefact says, `rows` and the fields after it left unread.

        `otherwise` where it is missing or damaged.
        """
        try:
            with (self.path / name).open(encoding="utf-8") as file:
                return parse(json.loads(file.read() if rows is None else _head(file, rows)))
        except FileNotFoundError:
            return otherwise
        except _ERRORS:
            self.troubles.append(f"{name} is damaged")
            return otherwise

    def has(self, name: str) -> bool:
        """Whether the artefact is there."""
        return (self.path / name).exists()


def _head(lines: Iterable[str], rows: str) -> str:
    """The object before its field of rows: an artefact is written with a field a line."""
    head: list[str] = []
    for line in lines:
        if line.lstrip().startswith(f'"{rows}": ['):
            return "".join(head).rstrip().removesuffix(",") + "}"
        head.append(line)
    return "".join(head)


def _latest_first(paths: Sequence[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: (_started(path), _begun(path), path.name), reverse=True)


def _begun(path: Path) -> int:
    """What tells two runs of one second apart, as far as the file system can."""
    with suppress(OSError):
        return (path / ABOUT).stat().st_mtime_ns
    return 0


def _started(path: Path) -> str:
    with suppress(*_ERRORS):
        started = json.loads((path / ABOUT).read_bytes())["started"]
        datetime.fromisoformat(started)
        return str(started)
    return _moment(path.stat().st_mtime)


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _about(values: dict[str, Any]) -> tuple[str, str | None]:
    return typed(values["cluster"], str), typed(values["commit"], str | None)


def _reported(values: dict[str, Any]) -> _End:
    answer, plan = values["answer"], values["plan"]
    return _End(
        typed(answer["word"], str),
        typed(answer["sentence"], str),
        plan and typed(plan["digest"], str),
        typed(values["counts"]["changed"], int),
    )


def _without_report(parts: _Parts) -> _End:
    digest = parts.tell(PLAN, lambda plan: typed(plan["digest"], str), None, rows="differences")
    changes = parts.tell(APPLIED, _accepted, 0)
    for stage in (*STAGES, "adopt", "release"):
        ended = parts.tell(f"stage-{stage}.json", partial(_ended, stage), None)
        if ended and ended.status in {StageStatus.REFUSED, StageStatus.FAILED}:
            return _End(f"{stage} {ended.status}", ended.message, digest, changes)
    came_to = next((word for names, word in _ENDS if all(map(parts.has, names))), "unfinished")
    return _End(came_to, None, digest, changes)


def _ended(stage: str, values: dict[str, Any]) -> StageResult | None:
    return StageResult(stage, StageStatus(values["status"]), message=values["message"])


def _accepted(applied: dict[str, Any]) -> int:
    outcomes = outcomes_from_json(applied)
    return sum(len(one.keys) for one in outcomes if one.status is Status.ACCEPTED)


def _decisions(approval: dict[str, Any]) -> tuple[Decision, ...]:
    return tuple(map(Decision.from_json, approval["decisions"]))
