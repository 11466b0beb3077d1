"""Move the clock of each Python process: a run with this folder on PYTHONPATH begins at CLOCK.

A file that such a process links or renames, as a run store does, gets the time of this clock too.
Brokers, TLS and the clients of buckets keep the machine's clock.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import wraps
from typing import Any

import time_machine

if "CLOCK_AHEAD" not in os.environ:  # so that later processes continue this clock
    begin = datetime.fromisoformat(os.environ["CLOCK"])
    os.environ["CLOCK_AHEAD"] = str(begin.timestamp() - time.time())
time_machine.travel(time.time() + float(os.environ["CLOCK_AHEAD"])).start()
time.time()  # the first reading starts the clock, which forks of this process then continue


def _dated(place: Callable[..., None]) -> Callable[..., None]:
    @wraps(place)
    def place_now(source: Any, *target: Any, **options: Any) -> None:
        with suppress(OSError):  # `place` raises it
            os.utime(source, (time.time(), time.time()))
        place(source, *target, **options)

    return place_now


setattr(os, "link", _dated(os.link))  # noqa: B010 - as typed, it takes no wrapper
setattr(os, "replace", _dated(os.replace))  # noqa: B010
