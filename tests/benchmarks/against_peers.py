"""Reconciles beside the two small programs of `peers/README.md`, all in turn."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from quota_ops.lab.kafka.jars import fetch_jars
from tests.benchmarks import bulk, inputs
from tests.benchmarks.against_bare import ALLOW, LARGE, ONE_PERCENT, SMALL, adopt, empty
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Sample, Spread, run

_SOURCE = Path(__file__).with_name("peers") / "JavaAdmin.java"
_OURS, _BARE, _JAVA = "quota-ops", "bare kafka-python", "Java Admin"


def peers(bench: Bench) -> Iterator[Row]:
    """Measure reconciles of 1,000 and of 10,000 entities: 1 % differ, all do, or a first apply."""
    programs = _list_programs(bench)
    steps = count(1)
    for entities in (SMALL // 10, SMALL):
        adopt(bench, entities)
        for what, prepare, bare in (
            ("1 % differ", partial(_move, bench, entities, steps, ONE_PERCENT), 2.0),
            ("all differ", partial(_move, bench, entities, steps, 1), 2.3),
            ("a first apply", partial(_empty, bench, entities), 2.3),
        ):
            targets = {_JAVA: 1.0, _BARE: bare}
            measured = _measure(programs, prepare, bench.runs)
            yield from _compare(f"{entities:,} entities, {what}", measured, targets)


def large(bench: Bench) -> Iterator[Row]:
    """Measure reconciles of 100,000 entities in 50 files: one of them changed, or all drifted."""
    steps = count(1)
    adopt(bench, LARGE, files=50)
    move = partial(_move, bench, LARGE, steps, ONE_PERCENT, files=50)
    measured = _measure(_list_programs(bench), move, bench.runs)
    yield from _compare("100,000 entities, 1 % differ", measured, {_JAVA: 1.5, _BARE: 2.0})
    peak = Spread.of([sample.peak for sample in measured[_OURS]])
    yield Row("the same, peak memory", peak.text(" MB"), "under 500 MB", peak.median < 500)
    bench.quota_ops("reconcile", "bench", *ALLOW)  # the last change was another program's
    bulk.empty(bench.broker)
    drifted = bench.quota_ops("reconcile", "bench")
    yield Row(
        "reconcile of 100,000 entities, all drifted",
        f"{drifted.wall:.1f} s, CPU {drifted.cpu:.1f} s, {drifted.peak:.0f} MB",
        "under 60 s",
        drifted.wall < 60,
    )
    empty(bench)


def _list_programs(bench: Bench) -> dict[str, Callable[[], Sample]]:
    programs: dict[str, Callable[[], Sample]] = {
        _OURS: partial(bench.quota_ops, "reconcile", "bench", *ALLOW),
        _BARE: partial(bench.bare, "apply"),
    }
    if javac := shutil.which("javac"):
        java = _compile(bench, javac)
        given = (str(bench.cluster), bench.broker.bootstrap(), "apply")
        programs[_JAVA] = partial(run, [*java, *given])
    return programs


def _compile(bench: Bench, javac: str) -> list[str]:
    """Compile the Java program; return the command that starts it."""
    jars, classes = f"{fetch_jars()}/*", bench.home / "classes"
    subprocess.run([javac, "-nowarn", "-cp", jars, "-d", str(classes), str(_SOURCE)], check=True)
    return ["java", "-cp", f"{classes}:{jars}", "JavaAdmin"]


def _move(bench: Bench, entities: int, steps: "count[int]", every: int, files: int = 1) -> None:
    inputs.write_quotas(bench.cluster, entities, moved=every, step=next(steps), files=files)


def _empty(bench: Bench, entities: int) -> None:
    empty(bench)
    inputs.write_quotas(bench.cluster, entities)


def _measure(
    programs: Mapping[str, Callable[[], Sample]], prepare: Callable[[], None], runs: int
) -> Mapping[str, list[Sample]]:
    """Run the programs in turn, each after `prepare`; leave out the first round."""
    samples: dict[str, list[Sample]] = {name: [] for name in programs}
    for _ in range(runs + 1):
        for name, once in programs.items():
            prepare()
            samples[name].append(once())
    return {name: measured[1:] for name, measured in samples.items()}


def _compare(
    what: str, measured: Mapping[str, list[Sample]], targets: Mapping[str, float]
) -> Iterator[Row]:
    """Yield a row for each program that quota-ops is compared with."""
    for name in measured.keys() & targets.keys():
        pairs = list(zip(measured[_OURS], measured[name], strict=True))
        wall, cpu = (
            Spread.of([getattr(pair, figure) / getattr(other, figure) for pair, other in pairs])
            for figure in ("wall", "cpu")
        )
        seconds = Spread.of([sample.wall for sample in measured[name]]).median
        yield Row(
            f"reconcile, {what}: to {name} ({seconds:.2f} s)",
            f"{wall.text(' times')}, CPU {cpu.median:.2f}",
            f"{targets[name]:g} times",
            wall.median <= targets[name],
        )
