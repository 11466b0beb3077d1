"""Reconciles beside the two small programs of `peers/README.md`, all in turn."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

from quota_ops.lab.kafka.jars import fetch_jars
from tests.benchmarks import inputs
from tests.benchmarks.against_bare import ALLOW, ONE_PERCENT, SMALL, adopt, empty
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Sample, Spread, run

_SOURCE = Path(__file__).with_name("peers") / "JavaAdmin.java"
_BARE, _JAVA = "bare kafka-python", "Java Admin"


def peers(bench: Bench) -> Iterator[Row]:
    """Measure reconciles of 1,000 and of 10,000 entities: 1 % differ, or a first apply."""
    programs: dict[str, Callable[[], Sample]] = {
        "quota-ops": partial(bench.quota_ops, "reconcile", "bench", *ALLOW),
        _BARE: partial(bench.bare, "apply"),
    }
    if javac := shutil.which("javac"):
        java = _compile(bench, javac)
        given = (str(bench.cluster), bench.broker.bootstrap(), "apply")
        programs[_JAVA] = partial(run, [*java, *given])
    steps = count(1)
    for entities in (SMALL // 10, SMALL):
        adopt(bench, entities)
        move = partial(_move, bench, entities, steps)
        small = {_JAVA: 1.0, _BARE: 2.0}
        yield from _compare(f"{entities:,} entities, 1 % differ", programs, move, bench.runs, small)
        first = {_JAVA: 1.0, _BARE: 2.3}
        clear = partial(_empty, bench, entities)
        yield from _compare(
            f"{entities:,} entities, a first apply", programs, clear, bench.runs, first
        )


def _compile(bench: Bench, javac: str) -> list[str]:
    """Compile the Java program; return the command that starts it."""
    jars, classes = f"{fetch_jars()}/*", bench.home / "classes"
    subprocess.run([javac, "-nowarn", "-cp", jars, "-d", str(classes), str(_SOURCE)], check=True)
    return ["java", "-cp", f"{classes}:{jars}", "JavaAdmin"]


def _move(bench: Bench, entities: int, steps: "count[int]") -> None:
    inputs.write_quotas(bench.cluster, entities, moved=ONE_PERCENT, step=next(steps))


def _empty(bench: Bench, entities: int) -> None:
    empty(bench)
    inputs.write_quotas(bench.cluster, entities)


def _compare(
    what: str,
    programs: dict[str, Callable[[], Sample]],
    prepare: Callable[[], None],
    runs: int,
    targets: dict[str, float],
) -> Iterator[Row]:
    """Run the programs in turn, each after `prepare`; yield a row for each comparison.

    The first round is not counted.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in programs}
    for _ in range(runs + 1):
        for name, once in programs.items():
            prepare()
            samples[name].append(once())
    ours = samples["quota-ops"][1:]
    for name in programs.keys() & targets.keys():
        theirs = samples[name][1:]
        pairs = list(zip(ours, theirs, strict=True))
        wall, cpu = (
            Spread.of([getattr(pair, figure) / getattr(other, figure) for pair, other in pairs])
            for figure in ("wall", "cpu")
        )
        seconds = Spread.of([sample.wall for sample in theirs]).median
        yield Row(
            f"reconcile, {what}: to {name} ({seconds:.2f} s)",
            f"{wall.text(' times')}, CPU {cpu.median:.2f}",
            f"{targets[name]:g} times",
            wall.median <= targets[name],
        )
