"""The marks of runs that write to a cluster, each from before its first request until its end.

A mark that stays belongs to a run that died or that ended with unknown rows; a later run finds it
by its mark. The process locks its mark, and the lock ends with the process, so that processes of
one machine see each other. An object store has no locks: there, the mark names the process, and
processes of its machine see whether that has ended. Elsewhere only the age of the mark counts.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from quota_ops.model.errors import InvalidInput
from quota_ops.model.runs.stages import Life
from quota_ops.store.places.place import Place
from quota_ops.store.places.process import Process, is_alive
from quota_ops.store.places.written_by import stamp
from quota_ops.store.run.files import ABOUT

GRACE = timedelta(hours=1)
"""How long a mark counts as alive if locks cannot show it, or between two tasks of a DAG run."""


@contextmanager
def at_work(run: Place) -> Iterator[None]:
    """Mark the run of a folder, and lock the mark as long as the block runs.

    Raises InvalidInput if the mark cannot be written.
    """
    place = _mark(run)
    since = datetime.now(UTC).isoformat()
    mark = {"machine": place.machine(), "process": Process.current(), "since": since}
    place.replace(json.dumps(stamp(mark)).encode(), durable=True)
    with place.lock():
        yield


def unmark(run: Place) -> None:
    """Delete the mark of a run whose end is recorded."""
    with suppress(OSError):
        _mark(run).delete()


def mark_unsettled(run: Place) -> None:
    """Record in the mark of a run that it has ended with unknown rows."""
    with suppress(OSError, ValueError, TypeError, InvalidInput):
        place = _mark(run)
        place.replace(json.dumps(json.loads(place.read()) | {"ended": True}).encode())


def is_unsettled(run: Place) -> bool:
    """Return whether a run ended with unknown rows that no later run has settled."""
    with suppress(OSError, ValueError, AttributeError):
        return json.loads(_mark(run).read()).get("ended") is True
    return False


def is_marked(run: Place) -> bool:
    """Return whether a run has a mark, whether or not its process is still alive."""
    return _mark(run).exists()


def find_marked_runs(root: Place) -> list[Place]:
    """Return the marked runs in a run store: a cluster may have runs under several names.

    Raises like `Place.walk`.
    """
    marked = ((root / "runs").below(leaf.path) for leaf in (root / "at_work").walk())
    return [run for run in marked if (run / ABOUT).exists()]


def find_unrecorded_runs(root: Place) -> list[Place]:
    """Return the runs in a run store that write, or died before they recorded their end."""
    return [place for place in find_marked_runs(root) if not is_unsettled(place)]


def find_liveness(run: Place) -> Life:
    """Return whether the process that marked a run is alive, if this machine can find out.

    A process that cannot be seen counts as gone when its mark is overdue.
    """
    place, mark = _mark(run), _read(run)
    is_locked, machine = place.is_locked(), mark.get("machine")
    if is_locked:
        return Life.RUNNING
    is_seen = is_locked is False and machine and machine == place.machine()
    if is_seen or is_alive(mark.get("process")) is False or is_overdue(run):
        return Life.GONE
    return Life.UNKNOWN


def has_process_ended(run: Place) -> bool:
    """Return whether the process that marked a run has ended; False if this one cannot tell."""
    return is_alive(_read(run).get("process")) is False


def format_deadline(run: Place) -> str | None:
    """Return the minute from which on a run without a visible process counts as gone: `... UTC`."""
    with suppress(KeyError, OverflowError, TypeError, ValueError):
        since = datetime.fromisoformat(_read(run)["since"])
        return f"{since.astimezone(UTC) + GRACE + timedelta(minutes=1):%Y-%m-%d %H:%M} UTC"
    return None


def is_overdue(run: Place) -> bool:
    """Return whether a mark is too old to count, or was damaged by a power cut."""
    try:
        since = datetime.fromisoformat(json.loads(_mark(run).read())["since"])
        return datetime.now(UTC) - since > GRACE
    except OSError:  # another run may have recorded its end just now
        return False
    except (KeyError, RecursionError, TypeError, ValueError):
        return True


def _read(run: Place) -> dict[str, Any]:
    with suppress(OSError, RecursionError, ValueError):
        mark = json.loads(_mark(run).read())
        return mark if isinstance(mark, dict) else {}
    return {}


def _mark(run: Place) -> Place:
    return run.parent.parent.parent / "at_work" / run.parent.name / run.name
