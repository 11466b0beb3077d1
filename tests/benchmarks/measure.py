"""Whole processes, measured from outside: wall time, CPU of all descendants, peak memory."""

import ctypes
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SUBREAPER = 36


@dataclass(frozen=True)
class Sample:
    """One run of a command: seconds of wall and CPU time, and the largest process's peak in MB."""

    wall: float
    cpu: float
    peak: float


@dataclass(frozen=True)
class Spread:
    """The lowest, middle and highest of several measurements."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of at least one value."""
        return cls(min(values), statistics.median(values), max(values))

    def text(self, unit: str = "") -> str:
        """`1.20 (1.10-1.40) s`."""
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f}){unit}"


def adopt_orphans() -> None:
    """Adopt a JVM that outlives its Python process, so that its CPU is counted."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Sample:
    """Run a command to its end. Raises RuntimeError with its last output if it fails."""
    before, others = resource.getrusage(resource.RUSAGE_CHILDREN), _children()
    Path("/proc/self/clear_refs").write_text("5")  # a child's peak includes the one it forked from
    began = time.perf_counter()
    child = subprocess.Popen(
        command,
        env=_usual(os.environ) | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    said = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    _wait_for_orphans(others)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {child.returncode}\n{said.decode()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Sample(wall, cpu, used.ru_maxrss / 1024)


def _usual(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with compiled modules enabled, as users have them."""
    return {k: v for k, v in environment.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _wait_for_orphans(others: set[int]) -> None:
    while orphans := _children() - others:
        for pid in orphans:
            os.waitpid(pid, 0)


def _children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(pid) for task in tasks for pid in task.read_text().split()}


@dataclass(frozen=True)
class Pair:
    """Two commands run in turn: their samples, and their ratio pair by pair."""

    ours: tuple[Sample, ...]
    other: tuple[Sample, ...]

    def ratio(self, what: str) -> Spread:
        """Return the first command's `wall`, `cpu` or `peak` divided by the second's."""
        pairs = zip(self.ours, self.other, strict=True)
        return Spread.of([getattr(a, what) / getattr(b, what) for a, b in pairs])

    def spread(self, what: str, *, other: bool = False) -> Spread:
        """Return the spread of one side."""
        return Spread.of([getattr(one, what) for one in (self.other if other else self.ours)])


def pair(ours: Callable[[], Sample], other: Callable[[], Sample], runs: int) -> Pair:
    """Run both in turn, after one round that is not counted."""
    ours()
    other()
    samples = [(ours(), other()) for _ in range(runs)]
    return Pair(tuple(sample for sample, _ in samples), tuple(sample for _, sample in samples))


def machine() -> dict[str, str]:
    """Describe the machine of the measurements."""
    cpu = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"cpu": cpu, "cores": str(os.cpu_count()), "memory": f"{memory:.0f} GiB"}
