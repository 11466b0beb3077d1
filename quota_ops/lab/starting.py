"""Waits for a service that is starting, for as long as it makes progress."""

import time
from collections.abc import Callable, Collection
from pathlib import Path

from quota_ops.lab.kafka.process import OwnProcess
from quota_ops.model.errors import ClusterTrouble

STALLED_SECONDS = 180.0
"""How long a service may start without a new line in its log, or another part that responds."""
LONGEST_SECONDS = 1200.0
_TAIL_LINES = 20


def wait_for_start(
    service: str,
    process: OwnProcess,
    log: Path,
    list_silent: Callable[[], Collection[str]],
    *,
    stalled: float = STALLED_SECONDS,
) -> None:
    """Return when `list_silent` lists no part of the service that does not respond yet.

    A busy machine gets the time that it needs. Raises ClusterTrouble when the process ends, when
    nothing changes for `stalled` seconds, or after 20 minutes: with the parts that did not respond,
    the reason, and the end and the path of the log.
    """
    began = changed = time.monotonic()
    seen: object = None
    while silent := sorted(list_silent()):
        now, state = time.monotonic(), (silent, log.stat().st_size)
        if state != seen:
            seen, changed = state, now
        if not process.alive:
            why = "its process ended"
        elif now - changed > stalled:
            why = f"nothing changed for {stalled:.0f} s"
        elif now - began > LONGEST_SECONDS:
            why = f"it was not ready after {LONGEST_SECONDS:.0f} s"
        else:
            time.sleep(0.2)
            continue
        raise ClusterTrouble(
            f"{service} did not start: no response from {', '.join(silent)}, and {why}\n"
            + read_end(log),
            "If the machine was busy, or had too little free memory, run the command again.",
        )


def read_end(log: Path) -> str:
    """Return the last lines of a log, with its path."""
    lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    return "\n".join([f"The end of {log}:", *lines])
