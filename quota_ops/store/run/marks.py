"""The marks of runs that write to a cluster, each from before its first request until its end.

A mark that stays belongs to a run that died or that ended with unknown rows; a later run finds it
in one listing, however many runs there are. `run.claim` shows whether a marked run is at work.
"""

import json
from contextlib import suppress

from quota_ops.model.errors import InvalidInput
from quota_ops.store.places.place import Place
from quota_ops.store.places.written_by import stamp
from quota_ops.store.run.files import ABOUT


def mark(run: Place) -> None:
    """Mark the run of a folder before it writes. Raises InvalidInput if that fails."""
    _write(run, ended=False)


def unmark(run: Place) -> None:
    """Delete the mark of a run whose end is recorded."""
    with suppress(OSError):
        _place(run).delete()


def mark_unsettled(run: Place) -> None:
    """Record in the mark of a run that it has ended with unknown rows."""
    with suppress(InvalidInput):
        _write(run, ended=True)


def is_unsettled(run: Place) -> bool:
    """Return whether a run ended with unknown rows that no later run has settled."""
    with suppress(OSError, RecursionError, ValueError, AttributeError):
        return json.loads(_place(run).read()).get("ended") is True
    return False


def is_marked(run: Place) -> bool:
    """Return whether a run has a mark, whether or not its process is still alive."""
    return _place(run).exists()


def find_marked_runs(root: Place) -> list[Place]:
    """Return the marked runs in a run store: a cluster may have runs under several names.

    Raises like `Place.walk`.
    """
    marked = ((root / "runs").below(leaf.path) for leaf in (root / "at_work").walk())
    return [run for run in marked if (run / ABOUT).exists()]


def find_unrecorded_runs(root: Place) -> list[Place]:
    """Return the runs in a run store that write, or died before they recorded their end."""
    return [place for place in find_marked_runs(root) if not is_unsettled(place)]


def _write(run: Place, *, ended: bool) -> None:
    _place(run).replace(json.dumps(stamp({"ended": ended})).encode(), durable=True)


def _place(run: Place) -> Place:
    return run.parent.parent.parent / "at_work" / run.parent.name / run.name
