"""A command line that kills itself: what a process of its own runs."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

from quota_ops import artefact
from quota_ops.cli import main
from quota_ops.frames import text
from quota_ops.kafka.cluster import Cluster

PRELOAD = ["duckdb", "quota_ops.cli.running", "quota_ops.stages.report", __name__]
"""What a process has imported when it begins, so that it begins at once."""


def kill_at_step(step: int, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; at its step-th file or request, die with SIGKILL before that is done.

    Of a file all is written by then, but it does not bear its name yet.
    """
    steps = count(1)

    def dying(act: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
        def one_step(*given: Any, **named: Any) -> Any:
            if first:
                die_at(next(steps), step)
            done = act(*given, **named)
            if not first:
                die_at(next(steps), step)
            return done

        return one_step

    setattr(artefact, "_draft", dying(artefact._draft, first=False))  # noqa: SLF001, B010
    setattr(Cluster, "apply", dying(Cluster.apply, first=True))  # noqa: B010
    run(environment, arguments)


def kill_after(seconds: float, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; die with SIGKILL some time after its first write began."""
    apply = Cluster.apply

    def doomed(cluster: Cluster, alterations: Any) -> Any:
        threading.Timer(seconds, die).start()
        setattr(Cluster, "apply", apply)  # noqa: B010
        return apply(cluster, alterations)

    setattr(Cluster, "apply", doomed)  # noqa: B010
    run(environment, arguments)


def die_at(now: int, step: int) -> None:
    """Die when it is time."""
    if now == step:
        die()


def die() -> None:
    """Leave no time for anything."""
    os.kill(os.getpid(), signal.SIGKILL)


def run(environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command in batches of three keys, its output nowhere."""
    setattr(text, "batches_text", partial(text.batches_text, max_keys=3))  # noqa: B010
    os.environ.update(environment)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - no path of ours
        sys.stdout = sys.stderr = nowhere
        main(arguments, standalone_mode=False)
