"""A command line that kills itself, run by a process of its own."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from quota_ops.cli import main
from quota_ops.kafka import audit_topic
from quota_ops.kafka.cluster import Cluster
from quota_ops.sql import text
from quota_ops.stages import verify
from quota_ops.stages.report.end_record import TOPIC
from quota_ops.store.places import local

PRELOAD = ["duckdb", "quota_ops.cli.stage_run", "quota_ops.stages.report.forms", __name__]
"""What a process has imported when it begins, so that it begins at once."""


def kill_at_step(step: int, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; kill it with SIGKILL before its step-th file or request is done.

    A file is completely written by then, but does not have its name yet.
    """
    steps = count(1)
    apply = Cluster.apply

    def dying(cluster: Cluster, alterations: Any) -> Any:
        die_if(next(steps) == step)
        return apply(cluster, alterations)

    setattr(Cluster, "apply", dying)  # noqa: B010
    _in_every_file(lambda _place: die_if(next(steps) == step))
    run(environment, arguments)


def die_in_file(name: str, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command.

    Kill it when a file of this name is written, but does not have its name yet.
    """
    _in_every_file(lambda place: die_if(place.name == name))
    run(environment, arguments)


def die_in_request(
    number: int, environment: Mapping[str, str], arguments: Sequence[str], *, before: bool
) -> None:
    """Run a command; kill it before a request that writes, or after its response."""
    requests = count(1)
    apply = Cluster.apply

    def dying(cluster: Cluster, alterations: Any) -> Any:
        now = next(requests) == number
        die_if(now and before)
        answers = apply(cluster, alterations)
        die_if(now)
        return answers

    setattr(Cluster, "apply", dying)  # noqa: B010
    run(environment, arguments)


def die_before_verify(environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; kill it when apply has recorded its end, before any value is read back."""
    setattr(verify, "read_back", lambda *_, **__: die())  # noqa: B010
    run(environment, arguments)


def die_in_topic(topic: str, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; kill it when its end is recorded and not yet in the audit topic."""
    setattr(audit_topic, "produce", lambda *_: die())  # noqa: B010
    run({**environment, TOPIC: topic}, arguments)


def die_in_silence(broker: int, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; at its first write stop the broker, send, and kill it without a response."""
    apply = Cluster.apply

    def dying(cluster: Cluster, alterations: Any) -> Any:
        os.kill(broker, signal.SIGSTOP)
        threading.Timer(0.3, die).start()
        return apply(cluster, alterations)

    setattr(Cluster, "apply", dying)  # noqa: B010
    run(environment, arguments)


def stop_in_request(number: int, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; stop it by SIGSTOP before a request that writes, after all its checks.

    It exits with the command's exit code.
    """
    requests = count(1)
    apply = Cluster.apply

    def stopping(cluster: Cluster, alterations: Any) -> Any:
        if next(requests) == number:
            os.kill(os.getpid(), signal.SIGSTOP)
        return apply(cluster, alterations)

    setattr(Cluster, "apply", stopping)  # noqa: B010
    run(environment, arguments, standalone=True)


def kill_after(seconds: float, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run a command; kill it with SIGKILL some time after its first write began."""
    apply = Cluster.apply

    def doomed(cluster: Cluster, alterations: Any) -> Any:
        threading.Timer(seconds, die).start()
        setattr(Cluster, "apply", apply)  # noqa: B010
        return apply(cluster, alterations)

    setattr(Cluster, "apply", doomed)  # noqa: B010
    run(environment, arguments)


def die_if(now: bool) -> None:  # noqa: FBT001 - its name explains it
    """Kill the process at the given step."""
    if now:
        die()


def _in_every_file(act: Callable[[Path], None]) -> None:
    """Call a function whenever a file is completely written but does not have its name yet."""
    draft = local._draft  # noqa: SLF001

    @contextmanager
    def acting(place: Path, content: bytes) -> Iterator[Any]:
        with draft(place, content) as drafted:
            act(place)
            yield drafted

    setattr(local, "_draft", acting)  # noqa: B010


def die() -> None:
    """Kill this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def run(
    environment: Mapping[str, str], arguments: Sequence[str], *, standalone: bool = False
) -> None:
    """Run a command in batches of three keys, without output."""
    setattr(text, "batches_text", partial(text.batches_text, max_keys=3))  # noqa: B010
    os.environ.update(environment)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - no path of ours
        sys.stdout = sys.stderr = nowhere
        main(arguments, standalone_mode=standalone)
