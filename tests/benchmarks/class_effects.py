"""What the effects on classes of clients cost in a plan: CPU with them to CPU without them."""

import sys
from collections.abc import Iterator
from functools import partial

from tests.benchmarks import inputs
from tests.benchmarks.against_bare import SMALL, adopt
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Sample, pair, run

_PROGRAM = "from quota_ops.__main__ import run; from quota_ops.stages import plan; {} run()"
_WITHOUT = "plan.find_plan_effects = lambda *_: {};"


def class_effects(bench: Bench) -> Iterator[Row]:
    """Measure a plan of 10,000 entities, 20,000 rows, of which 10 to 10,000 change."""
    adopt(bench, SMALL)
    for rows in (10, 100, 1_000, 10_000):
        inputs.write_quotas(bench.cluster, SMALL, moved=SMALL // rows, step=1)
        measured = pair(partial(_plan, bench), partial(_plan, bench, _WITHOUT), bench.runs)
        cpu = measured.ratio("cpu")
        yield Row(
            f"plan, {rows:,} of 20,000 rows change: CPU to a plan without class effects",
            cpu.text(" times"),
            "1.1 times",
            cpu.median <= 1.1,
        )


def _plan(bench: Bench, change: str = "") -> Sample:
    command = [sys.executable, "-c", _PROGRAM.format(change), "plan", "bench"]
    return run(command, bench.environment())
