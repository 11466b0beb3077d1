"""The identity of a process, so that other processes of the machine see that it has ended.

A store without locks, such as a bucket, shows nothing about processes. The ids of processes do, as
long as both processes count them alike: in the same boot of a machine, and in the same container.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


class Process(NamedTuple):
    """A process of a Linux machine."""

    boot: str
    """The id of the boot of the machine."""
    namespace: str
    """The namespace of process ids, which differs between containers."""
    number: int
    started: str
    """When it started, in ticks since the boot: a later process may get the same number."""

    @classmethod
    def current(cls) -> Self | None:
        """Return this process; None if the system does not show all of this."""
        with suppress(OSError):
            number = os.getpid()
            boot = _BOOT.read_text("ascii").strip()
            return cls(boot, str(_NAMESPACE.readlink()), number, _read_start(number))
        return None


def is_alive(noted: Any) -> bool | None:
    """Return whether a noted process is still running; None if this process cannot tell."""
    this = Process.current()
    if this is None or not isinstance(noted, list | tuple) or [*noted[:2]] != [*this[:2]]:
        return None
    try:
        _, _, number, started = noted
        os.kill(number, 0)  # finds processes of other users, too, which /proc may hide
        return bool(_read_start(number) == started)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError, TypeError, ValueError):
        return None


def _read_start(number: int) -> str:
    """Return the field `starttime` of a process; its name before that may contain anything."""
    status = Path(f"/proc/{number}/stat").read_text("utf-8", "replace")
    return status.rpartition(") ")[2].split()[19]
