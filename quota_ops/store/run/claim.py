"""Claims of a run: one process at a time applies it, and others see whether it is at work.

A claim is a lease: while its process works, a thread renews it. To another host, which cannot see
the process, it has ended when its claim was not renewed for `LEASE`. That host may then take the
run over; a process that was only paused finds the later claim before its next request, and sends
nothing more.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, takewhile
from threading import Event, Lock, Thread
from typing import NamedTuple

from msgspec import Struct, field

from quota_ops.model.errors import Claimed, InvalidInput
from quota_ops.model.moment import iso_utc, uptime
from quota_ops.model.stored import from_json, to_json
from quota_ops.model.text import command
from quota_ops.store.places.json_text import json_text
from quota_ops.store.places.place import Place
from quota_ops.store.places.process import Process, is_alive
from quota_ops.store.run.files import CLAIM
from quota_ops.store.run.folder import RunFolder

LEASE = 60.0
"""Seconds without a renewal after which a claim of a process that cannot be seen has ended."""
RENEWAL = 15.0
"""Seconds between two renewals."""
_log = logging.getLogger(__name__)


class _Holder(NamedTuple):
    """The process that has claimed a run, as its claim names it."""

    host: str = "?"
    process: tuple[str, str, int, str] | None = None
    since: str = "?"
    ended: bool = False

    def __str__(self) -> str:
        """Return the process as people look for it."""
        return f"process {self.process[2] if self.process else '?'} on host {self.host}"


class RunClaim(Struct):
    """The claim of this process to apply a run."""

    folder: RunFolder
    number: int
    holder: _Holder
    _renewed: float = field(default_factory=uptime)
    _lock: Lock = field(default_factory=Lock)

    @property
    def place(self) -> Place:
        """The file of the claim."""
        return _place(self.folder, self.number)

    def require(self) -> None:
        """Raise Claimed if another process has taken over the run, and InvalidInput like `renew`.

        It reads the run store only if a renewal is overdue.
        """
        if uptime() - self._renewed > LEASE / 2:
            self.renew()

    def renew(self) -> None:
        """Renew the claim; Claimed if another process has taken over, InvalidInput if that fails.

        It writes the renewal and then looks for a later claim; a process that takes over creates
        its claim and then looks for a renewal. So at least one of the two finds the other.
        """
        with self._lock:
            began = uptime()
            self.place.replace(_as_bytes(self.holder))
            if _place(self.folder, self.number + 1).exists():
                self._renewed = -LEASE  # each later `require` looks again
                raise _explain_taken(self.folder, self.number + 1)
            self._renewed = began

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the claim in a thread as long as the block runs, then record its end."""
        ended = Event()
        thread = Thread(target=self._renew_until, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with suppress(InvalidInput):
                self.place.replace(_as_bytes(self.holder._replace(ended=True)))

    def _renew_until(self, ended: Event) -> None:
        while not ended.wait(RENEWAL):
            with suppress(Claimed, InvalidInput):  # `require` raises them where the run writes
                self.renew()


@contextmanager
def claim_run(folder: RunFolder) -> Iterator[RunFolder]:
    """Yield the folder with a claim of this process, which lasts as long as the block runs.

    Raises Claimed when another process has claimed the run and may still be at work; InvalidInput
    when a claim cannot be written, or when the folder is a copy of another run's.
    """
    folder.refuse_copy()
    last = _find_last(folder)
    is_open = _is_open(folder, last)
    if is_open:
        raise _explain_open(folder, last)
    holder = _Holder(socket.gethostname(), Process.current(), iso_utc())
    claim = RunClaim(folder, last + 1, holder)
    if not claim.place.create(_as_bytes(holder)):
        raise _explain_open(folder, last + 1)
    if is_open is None:
        _refuse_if_renewed(claim)
    with claim.renewing():
        yield replace(folder, require_claim=claim.require)


def is_at_work(folder: RunFolder) -> bool:
    """Return whether a process applies the run. Raises InvalidInput if that cannot be read."""
    return _is_open(folder, _find_last(folder)) or False


def has_process_ended(folder: RunFolder) -> bool:
    """Return whether the process that applied the run has ended; False if that is not visible."""
    return is_alive(_read(folder, _find_last(folder)).process) is False


def measure_silence(folder: RunFolder) -> timedelta:
    """Return how long ago the last claim was renewed or ended. Raises as `is_at_work`."""
    last = _find_last(folder)
    return datetime.now(UTC) - _read_time(_place(folder, last)) if last else timedelta.max


def _is_open(folder: RunFolder, number: int) -> bool | None:
    """Return whether a process keeps a claim; None if it cannot be seen and stopped renewing it."""
    holder = _read(folder, number)
    alive = is_alive(holder.process)
    if number == 0 or holder.ended or alive is False:
        return False
    silence = datetime.now(UTC) - _read_time(_place(folder, number))
    return True if alive or silence.total_seconds() < LEASE else None


def _find_last(folder: RunFolder) -> int:
    """Return the number of the last claim; 0 if nobody has claimed the run."""
    return max(takewhile(lambda number: _place(folder, number).exists(), count(1)), default=0)


def _refuse_if_renewed(claim: RunClaim) -> None:
    """Withdraw a claim, and raise Claimed, if the one before is fresh by the store's clock."""
    before = claim.number - 1
    silence = _read_time(claim.place) - _read_time(_place(claim.folder, before))
    if silence.total_seconds() < LEASE:
        claim.place.delete()
        raise _explain_open(claim.folder, before)
    _log.warning(
        "%s stopped renewing its claim: this process takes over", _read(claim.folder, before)
    )


def _place(folder: RunFolder, number: int) -> Place:
    return folder.place / CLAIM.of(number)


def _as_bytes(holder: _Holder) -> bytes:
    return json_text(to_json(_Holder, holder)).encode()


def _read(folder: RunFolder, number: int) -> _Holder:
    """Return who has a claim; if it is damaged, only its age shows whether anybody renews it."""
    with suppress(InvalidInput):
        return folder.read_as(CLAIM.of(number), partial(from_json, _Holder))
    return _Holder()


def _read_time(place: Place) -> datetime:
    try:
        return place.modified()
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be read: {error.strerror}",
            "Make the run store readable, and run the command again.",
        ) from error


def _explain_open(folder: RunFolder, number: int) -> Claimed:
    holder, run = _read(folder, number), _name_run(folder)
    return Claimed(
        f"another process has been applying run {run} since {holder.since}, and has not ended: "
        f"{holder}",
        f"Nothing was written. To see how it ended: {command('show', run)}",
    )


def _explain_taken(folder: RunFolder, number: int) -> Claimed:
    holder, run = _read(folder, number), _name_run(folder)
    return Claimed(
        f"this process was paused, and {holder} has been applying run {run} since {holder.since}",
        f"Nothing more was written. To see how it ended: {command('show', run)}",
    )


def _name_run(folder: RunFolder) -> str:
    return f"{folder.place.parent.name}/{folder.place.name}"
