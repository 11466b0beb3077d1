"""Which runs write to a cluster: a mark for each, from before its first request to its record.

A mark that stays is a run that died, or that ended without knowing what became of its rows, and a
later run finds it by that. The process holds a lock on
its mark, which the kernel releases whatever ends the process. So on one machine it is known who is
at work; a lock of another machine may not be seen, so there only time tells.
"""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from quota_ops.model.errors import InvalidInput
from quota_ops.store import local

GRACE = timedelta(hours=1)
"""How long a run of another machine, or between two tasks of a DAG run, is given to go on."""

_MACHINE = Path("/proc/sys/kernel/random/boot_id")


class Life(StrEnum):
    """What is known of the process that marked a run."""

    AT_WORK = "at work"
    GONE = "interrupted"
    UNKNOWN = "at work or interrupted"


@contextmanager
def at_work(run: Path) -> Iterator[None]:
    """Mark the run of a folder, and hold the mark's lock while the block runs.

    Raises InvalidInput when the mark cannot be written.
    """
    place = _mark(run)
    since = datetime.now(UTC).isoformat()
    local.write_durably(place, json.dumps({"machine": _machine(), "since": since}).encode())
    with local.open_file(place) as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


def unmark(run: Path) -> None:
    """Take the mark of a run away: its end is recorded."""
    with suppress(OSError):
        _mark(run).unlink()


def mark_unsettled(run: Path) -> None:
    """Let the mark of a run say that its end is recorded, and that it has unknown rows."""
    with suppress(OSError, ValueError, TypeError, InvalidInput):
        place = _mark(run)
        local.write(place, json.dumps(json.loads(place.read_bytes()) | {"ended": True}).encode())


def is_unsettled(run: Path) -> bool:
    """Whether a run ended with unknown rows that no later run has settled."""
    with suppress(OSError, ValueError, AttributeError):
        return json.loads(_mark(run).read_bytes()).get("ended") is True
    return False


def is_marked(run: Path) -> bool:
    """Whether a run has a mark, from a process at work or a dead one."""
    return local.exists(_mark(run))


def marked_runs(run: Path) -> list[Path]:
    """The folders of the other marked runs of the same cluster; InvalidInput as `list_names`."""
    return [one for one in all_marked_runs(run.parent) if one.name != run.name]


def all_marked_runs(runs: Path) -> list[Path]:
    """The folders of the marked runs in a cluster's folder of runs; raises as `list_names`."""
    names = sorted(local.list_names(_mark(runs / "any").parent))
    return [one for one in (runs / name for name in names) if one.is_dir()]


def life(run: Path) -> Life:
    """Whether the process that marked a run is at work, as far as this machine can tell."""
    with suppress(OSError, RecursionError, ValueError, KeyError, TypeError):
        place = _mark(run)
        with local.open_file(place) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return Life.AT_WORK
            if (machine := _machine()) and json.load(file)["machine"] == machine:
                return Life.GONE
    return Life.UNKNOWN


def is_overdue(run: Path) -> bool:
    """Whether a run was marked so long ago that it is given up, or a power cut took its mark."""
    try:
        since = datetime.fromisoformat(json.loads(local.read(_mark(run)))["since"])
        return datetime.now(UTC) - since > GRACE
    except OSError:  # another run may have recorded its end just now
        return False
    except (KeyError, RecursionError, TypeError, ValueError):
        return True


def _mark(run: Path) -> Path:
    run = run.absolute()
    return run.parents[2] / "at_work" / run.parent.name / run.name


def _machine() -> str | None:
    """What no other running machine has; None where the system does not tell."""
    with suppress(OSError):
        return _MACHINE.read_text().strip()
    return None
