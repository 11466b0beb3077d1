"""Every combination of three sides, two ledger rows and its memory, under every policy."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import isnan, nan
from typing import Any, NamedTuple

import pytest

from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from tests.engines.oracle import decide
from tests.engines.runs import Sides

KEY = "producer_byte_rate"
POLICIES = {
    f"{drift}-{clears}": (drift, clears)
    for drift, clears in product(("repair", "ask", "report"), (True, False))
}
HELD = "held until 2026-11-21 05:00 UTC by anna: why"
BORDERS = sorted(
    product((True, False), (None, "protected"), (None, HELD)),
    key=lambda one: (one[0], one[1] is None, one[2] is None).count(False) == 1,
)
"""What keeps a row from being written; those that do it alone come last."""
ASKED: Any = ("asker", "because", "asker.yaml", 7)
VERIFIED = ("verified", "verifier", "verifier.yaml", "c1", "run-1", "2026-11-01T00:00:00Z")
INTENDED = ("intended", "intender", "intender.yaml", "c2", "run-2", "2026-11-02T00:00:00Z")
ALTERED: Any = ("altered", None, None, None, "run-2", "2026-11-02T00:00:00Z")
LATE = ("intended", "late", "late.yaml", "c3", "run-3", "2026-11-03T00:00:00Z")
CLEARED = ("cleared", "leaver", "leaver.yaml", "c4", "run-4", "2026-11-04T00:00:00Z")
MEMORIES: tuple[tuple[tuple[float | None, ...], tuple[float, ...]], ...] = tuple(
    product(((), (None,), (2.0,), (None, 2.0)), ((), (2.0,), (nan, 4.0)))
)
"""What is remembered of a row: intents that a later run replaced, and cleared values."""


class Meeting(NamedTuple):
    """One row's sides; an intent is () or its one value, which None clears, of a plan or an alter.

    The memory is one of MEMORIES.
    """

    desired: float | None
    actual: float | None
    verified: float | None
    intent: tuple[float | None, ...]
    of: Any
    memory: tuple[tuple[float | None, ...], tuple[float, ...]]
    in_scope: bool
    hands_off: str | None
    held: str | None


def meetings() -> Iterator[Meeting]:
    """Return all combinations: of four values only equality matters, and NaN is only stored."""
    values = ((), (None,), (1.0,), (2.0,), (3.0,), (4.0,))
    intents = (
        *((value, INTENDED) for value in values),
        *((value, ALTERED) for value in values[1:4]),
    )
    for desired, actual, verified, (intent, of), memory in product(
        (None, 1.0), (None, 1.0, 2.0, nan), (None, 1.0, 2.0, 3.0), intents, MEMORIES
    ):
        borders = BORDERS if memory == MEMORIES[0] else BORDERS[:1] + BORDERS[-3:]
        for in_scope, hands_off, held in borders:
            if actual is not None or (in_scope and not hands_off):
                yield Meeting(
                    *(desired, actual, verified, intent, of, memory, in_scope, hands_off, held)
                )


MEETINGS = {f"user=u{number:05}": meeting for number, meeting in enumerate(meetings())}


def sides(cluster: str) -> tuple[list[DesiredRow], list[ActualRow], list[LedgerRow]]:
    """Return every combination as the rows of one cluster."""
    desired, actual, ledger = [], [], []
    for entity, one in MEETINGS.items():
        row = (cluster, entity, KEY)
        if one.desired is not None:
            desired.append(DesiredRow(*row, one.desired, *ASKED))
        if one.actual is not None:
            actual.append(ActualRow(*row, one.actual, one.in_scope, one.hands_off))
        if one.verified is not None:
            ledger.append(LedgerRow(*row, one.verified, *VERIFIED, sequence=1))
        ledger += [LedgerRow(*row, value, *one.of)._replace(sequence=2) for value in one.intent]
        late, cleared = one.memory
        ledger += [LedgerRow(*row, value, *LATE, sequence=0) for value in late]
        ledger += [LedgerRow(*row, value, *CLEARED) for value in cleared]
    return desired, actual, ledger


HOLDS = {entity: one.held for entity, one in MEETINGS.items() if one.held is not None}


def comparable(rows: Iterable[Difference]) -> list[Difference]:
    """Return the rows without their batch, and with NaN written so that it equals itself."""
    return [
        row._replace(
            batch=None, before=-1.0 if row.before is not None and isnan(row.before) else row.before
        )
        for row in rows
    ]


def list_clusters() -> dict[str, Sides]:
    """Return the sides of a cluster for each policy."""
    return {
        cluster: Sides(*sides(cluster), HOLDS, drift, clears)
        for cluster, (drift, clears) in POLICIES.items()
    }


@pytest.fixture(scope="session")
def expected() -> dict[str, list[Difference]]:
    """Return the rows of the reference for each cluster."""
    return {
        cluster: comparable(
            decide(*sides(cluster), holds=HOLDS, drift=drift, clear_unmanaged=clears)
        )
        for cluster, (drift, clears) in POLICIES.items()
    }


def test_every_combination(
    decided: dict[str, list[Difference]], expected: dict[str, list[Difference]]
) -> None:
    """Both engines give the complete rows of the reference, for all clusters in one job."""
    for cluster, rows in expected.items():
        assert comparable(decided[cluster]) == rows
