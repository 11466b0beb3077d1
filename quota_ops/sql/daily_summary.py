"""The summary that the first run of a day makes, so that no run store depends on a Spark job."""

import logging
from datetime import datetime
from itertools import accumulate

from quota_ops.sql.history import summarize_history
from quota_ops.store.history.history import discard, list_days
from quota_ops.store.history.summaries import folder_of
from quota_ops.store.places.run_store import RunStore

MOST_ENDS = 1_000
"""Ends of runs, two seconds of work, after which the rest is left to the next day."""
_CLAIM = "begun-"
_log = logging.getLogger(__name__)


def summarize_daily(store: RunStore, now: datetime) -> None:
    """Summarize past days with DuckDB, the oldest first, unless a run began that today.

    Does nothing if all of them are compacted. Raises the errors of `summarize_history`.
    """
    today, folder = f"{now:%Y-%m-%d}", folder_of(store)
    claim = folder / f"{_CLAIM}{today}"
    if claim.exists():
        return
    past = [day for day in list_days(store) if day.date < today]
    if not any(day.ends for day in past) or not claim.create(b""):
        return
    begun = (name for name in folder.list() if name.startswith(_CLAIM))
    discard(folder / name for name in begun if name < claim.name)
    earlier = accumulate((0 if day.compacted else len(day.ends) for day in past), initial=0)
    last = [day.date for day, ends in zip(past, earlier, strict=False) if ends < MOST_ENDS][-1]

    from quota_ops.sql.embedded import EmbeddedEngine  # noqa: PLC0415 - DuckDB, once a day

    for trouble in summarize_history(EmbeddedEngine(), store, now, last).troubles:
        _log.warning("not counted in the history: %s", trouble)
