"""What the limits of clients cost in a plan: CPU with them to CPU without them.

Without them, no effect of a change is computed, and no unmanaged quota is overriding.
"""

import json
import sys
from collections.abc import Iterator
from functools import partial

from tests.benchmarks import inputs
from tests.benchmarks.against_bare import SMALL, adopt
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Sample, pair, run

_PROGRAM = """\
from quota_ops.__main__ import run
from quota_ops.sql import text
from quota_ops.stages import plan
{}
try:
    run()
except SystemExit as end:
    raise SystemExit(0 if end.code == 7 else end.code)  # 7: a quota is overriding
"""
_WITHOUT = """\
plan.find_plan_effects = lambda *_: {}
text.OTHER_QUOTAS += " AND FALSE"
"""
_LARGE = 100_000


def limits(bench: Bench) -> Iterator[Row]:
    """Measure plans of 10,000 and 100,000 entities, two rows each.

    Some rows change; then quotas by hand also override those of one user in a hundred.
    """
    for entities, changes in ((SMALL, (10, 1_000, 10_000)), (_LARGE, (1_000,))):
        adopt(bench, entities)
        for rows in changes:
            inputs.write_quotas(bench.cluster, entities, moved=entities // rows, step=1)
            yield _measure(bench, f"{rows:,} of {2 * entities:,} rows change")
        overriding = _override(bench, entities)
        yield _measure(bench, f"the same, {overriding:,} quotas by hand override others")


def _measure(bench: Bench, what: str) -> Row:
    measured = pair(partial(_plan, bench), partial(_plan, bench, _WITHOUT), bench.runs)
    cpu = measured.ratio("cpu")
    words = f"plan, {what}: CPU to a plan without the limits of clients"
    return Row(words, cpu.text(" times"), "1.1 times", cpu.median <= 1.1)


def _override(bench: Bench, entities: int) -> int:
    """Store a quota for all client ids of one user in a hundred; return how many."""
    lines = [
        json.dumps(
            {
                "entity": {"user": f"user-{number:06d}", "client-id": None},
                "key": "consumer_byte_rate",
                "value": 4_194_304,
            }
        )
        for number in range(0, entities // 2, 100)
    ]
    place = bench.home / "override.jsonl"
    place.write_text("\n".join(lines) + "\n")
    change = ("alter", "bench", "--from", str(place), "--reason", "measured")
    bench.quota_ops(*change, "--allow", "default_touched")
    return len(lines)


def _plan(bench: Bench, change: str = "") -> Sample:
    command = [sys.executable, "-c", _PROGRAM.format(change), "plan", "bench"]
    return run(command, bench.environment())
