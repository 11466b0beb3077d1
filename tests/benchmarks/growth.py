"""How the CPU time of a reconcile grows with the rows that differ."""

from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks import bulk, inputs
from tests.benchmarks.against_bare import ALLOW, SMALL, adopt
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Spread

_PER_OWNER = 10


def growth(bench: Bench) -> Iterator[Row]:
    """Measure reconciles in which all rows differ; each owner has ten entities."""
    differ: dict[str, Callable[[], None]] = {
        "all removed from Git": partial(_keep_one_owner, bench),
        "all removed from the cluster": partial(bulk.empty, bench.broker),
    }
    for what, prepare in differ.items():
        small, large = (_measure(bench, entities, prepare) for entities in (SMALL, 4 * SMALL))
        ratio = large.median / small.median
        yield Row(
            f"reconcile, {what}: CPU, 40,000 entities to 10,000 ({small.median:.1f} s)",
            f"{ratio:.2f} times",
            "4.4 times",
            ratio < 4.4,
        )


def _measure(bench: Bench, entities: int, prepare: Callable[[], None]) -> Spread:
    return Spread.of([_reconcile(bench, entities, prepare) for _ in range(bench.runs)])


def _reconcile(bench: Bench, entities: int, prepare: Callable[[], None]) -> float:
    adopt(bench, entities, files=entities // _PER_OWNER)
    prepare()
    allow = ("--allow", "owner_removed", "--allow", "unlimited", *ALLOW)
    return bench.quota_ops("reconcile", "bench", *allow).cpu


def _keep_one_owner(bench: Bench) -> None:
    inputs.write_quotas(bench.cluster, _PER_OWNER)
