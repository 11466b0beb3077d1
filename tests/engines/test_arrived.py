"""When an intent recorded before it was sent counts as managed."""

from collections.abc import Iterator
from itertools import product
from math import inf, nan

from quota_ops.model.plans.ledger_edits import INTENDED, VERIFIED, has_arrived
from quota_ops.model.quotas.difference import Difference, Kind
from quota_ops.model.quotas.rows import ActualRow, LedgerRow
from tests.engines.runs import Sides

VALUES = (None, 0.0, -0.0, 1.0, 1.0000000000000002, inf, nan)


def intents() -> Iterator[tuple[LedgerRow, float | None]]:
    """Yield an intent of each value, and a value that the cluster stores or does not."""
    for number, (intended, stored) in enumerate(product(VALUES, VALUES)):
        row = ("arrived", f"user=u{number:02}", "producer_byte_rate")
        yield LedgerRow(*row, intended, INTENDED, None, None, None, "r2", "t2", 2), stored


def list_clusters() -> dict[str, Sides]:
    """Return the sides of a cluster with these rows; 9.0 was verified."""
    actual, ledger = [], []
    for noted, stored in intents():
        row = noted[:3]
        ledger += [noted, LedgerRow(*row, 9.0, VERIFIED, None, None, None, "r1", "t1")]
        actual += [] if stored is None else [ActualRow(*row, stored, True, None)]
    return {"arrived": Sides(actual=actual, ledger=ledger)}


def test_python_and_sql_agree(decided: dict[str, list[Difference]]) -> None:
    """An intent has arrived in the diff exactly if it has for the stages."""
    found = decided["arrived"]

    arrived = {noted.id for noted, stored in intents() if has_arrived(noted, stored)}
    assert len(found) == len(VALUES) ** 2
    assert {row.id for row in found if row.kind in {Kind.REMOVED, Kind.CLEARED}} == arrived
