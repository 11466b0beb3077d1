"""A command line whose disk fills up, run by a process of its own."""

import os
import resource
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quota_ops import cli
from quota_ops.model.errors import QuotaOpsError
from quota_ops.store.places.local import LocalPlace
from tests.broker.killing import run

FULL = 75
"""How the process ends when it met the full disk, and said so."""


def fill_at(
    name: str, said: Path, environment: Mapping[str, str], arguments: Sequence[str]
) -> None:
    """Run a command; from a file of this name on the disk is full. Keep the output."""

    def tell(error: QuotaOpsError) -> None:
        _limit(_largest())
        said.write_text(f"exit {error.exit_code}: {error.message}", "utf-8")
        os._exit(FULL)

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    setattr(cli, "show_error", tell)  # noqa: B010
    for verb in ("replace", "create"):
        setattr(LocalPlace, verb, _filling(getattr(LocalPlace, verb), name))
    run(environment, arguments)


def _filling(keep: Any, name: str) -> Any:
    def keep_or_fill(place: LocalPlace, content: bytes, **how: bool) -> Any:
        if place.key.endswith(f"/{name}"):
            _limit(0)
        return keep(place, content, **how)

    return keep_or_fill


def _largest() -> int:
    return resource.getrlimit(resource.RLIMIT_FSIZE)[1]


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, _largest()))
