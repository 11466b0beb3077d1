"""Which runs write to a cluster: a mark for each, from before its first request to its record.

A mark that stays is a run that died, or that ended without knowing what became of its rows, and a
later run finds it by that. The process locks its mark, and the lock ends with the process. So on
one machine it is known who is at work; a lock of another machine may not be seen, and some stores
have no locks, so there only time tells.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from quota_ops.model.errors import InvalidInput
from quota_ops.store.place import Place
from quota_ops.store.run_folder import ABOUT

GRACE = timedelta(hours=1)
"""How long a run of another machine, or between two tasks of a DAG run, is given to go on."""


class Life(StrEnum):
    """What is known of the process that marked a run."""

    AT_WORK = "at work"
    GONE = "interrupted"
    UNKNOWN = "at work or interrupted"


@contextmanager
def at_work(run: Place) -> Iterator[None]:
    """Mark the run of a folder, and hold the mark's lock while the block runs.

    Raises InvalidInput when the mark cannot be written.
    """
    place = _mark(run)
    since = datetime.now(UTC).isoformat()
    mark = {"machine": place.store.machine(), "since": since}
    place.replace(json.dumps(mark).encode(), durable=True)
    with place.lock():
        yield


def unmark(run: Place) -> None:
    """Take the mark of a run away: its end is recorded."""
    with suppress(OSError):
        _mark(run).delete()


def mark_unsettled(run: Place) -> None:
    """Let the mark of a run say that its end is recorded, and that it has unknown rows."""
    with suppress(OSError, ValueError, TypeError, InvalidInput):
        place = _mark(run)
        place.replace(json.dumps(json.loads(place.read()) | {"ended": True}).encode())


def is_unsettled(run: Place) -> bool:
    """Whether a run ended with unknown rows that no later run has settled."""
    with suppress(OSError, ValueError, AttributeError):
        return json.loads(_mark(run).read()).get("ended") is True
    return False


def is_marked(run: Place) -> bool:
    """Whether a run has a mark, from a process at work or a dead one."""
    return _mark(run).exists()


def marked_runs(run: Place) -> list[Place]:
    """The folders of the other marked runs of the same cluster; InvalidInput as `Place.list`."""
    return [one for one in all_marked_runs(run.parent) if one.name != run.name]


def all_marked_runs(runs: Place) -> list[Place]:
    """The folders of the marked runs in a cluster's folder of runs; raises as `Place.list`."""
    names = _mark(runs / "any").parent.list()
    return [one for one in (runs / name for name in names) if (one / ABOUT).exists()]


def life(run: Place) -> Life:
    """Whether the process that marked a run is at work, as far as this machine can tell."""
    place, machine = _mark(run), None
    with suppress(OSError, RecursionError, ValueError, KeyError, TypeError):
        machine = json.loads(place.read())["machine"]
    match place.is_locked():
        case True:
            return Life.AT_WORK
        case False if machine and machine == place.store.machine():
            return Life.GONE
    return Life.UNKNOWN


def is_overdue(run: Place) -> bool:
    """Whether a run was marked so long ago that it is given up, or a power cut took its mark."""
    try:
        since = datetime.fromisoformat(json.loads(_mark(run).read())["since"])
        return datetime.now(UTC) - since > GRACE
    except OSError:  # another run may have recorded its end just now
        return False
    except (KeyError, RecursionError, TypeError, ValueError):
        return True


def _mark(run: Place) -> Place:
    return run.parent.parent.parent / "at_work" / run.parent.name / run.name
