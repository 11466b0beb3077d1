"""Claims of a run: one process at a time applies it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from quota_ops.model.errors import Claimed, InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.store.json_text import json_text
from quota_ops.store.process import Process, has_ended, is_running
from quota_ops.store.run_folder import RunFolder

_UNSEEN = timedelta(minutes=1)
"""How long a claim of a process counts that cannot be seen: people who approve a run at the same
time do so within it, and it ends before Airflow retries a task whose worker was killed."""


@contextmanager
def claim_run(folder: RunFolder) -> Iterator[None]:
    """Claim a run for this process as long as the block runs.

    Each claim is a file that is created once. Raises Claimed when another process has claimed the
    run and may still be at work; InvalidInput when the file cannot be written.
    """
    for number in count(1):
        place = folder.place / f"claim-{number:04d}.json"
        if not place.exists():
            break
        _refuse_if_open(folder, folder.read_json(place.name))
    claim = {"process": Process.current(), "since": iso_utc(), "ended": False}
    if not place.create(json_text(claim).encode()):
        raise _refusal(folder, folder.read_json(place.name))
    try:
        yield
    finally:
        with suppress(InvalidInput):
            folder.write_json(place.name, claim | {"ended": True})


def _refuse_if_open(folder: RunFolder, claim: Mapping[str, Any]) -> None:
    if claim["ended"] or has_ended(claim["process"]):
        return
    age = datetime.now(UTC) - datetime.fromisoformat(claim["since"])
    if is_running(claim["process"]) or age < _UNSEEN:
        raise _refusal(folder, claim)


def _refusal(folder: RunFolder, claim: Mapping[str, Any]) -> Claimed:
    run = f"{folder.place.parent.name}/{folder.place.name}"
    return Claimed(
        f"another process has applied run {run} since {claim['since']}, and has not ended",
        f"Nothing was written. To see how it ended: quota-ops show {run}",
    )
