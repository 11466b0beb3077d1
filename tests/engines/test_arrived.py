"""When an intent recorded before it was sent counts as managed."""

from itertools import product
from math import inf, nan
from pathlib import Path

from quota_ops.model.plans.ledger_edits import INTENDED, VERIFIED, has_arrived
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.rows import ActualRow, LedgerRow
from quota_ops.sql.job import Engine, diff_runs
from quota_ops.store.places.run_store import open_place
from tests.engines.runs import differences, put

CLUSTER = "c"
VALUES = (None, 0.0, -0.0, 1.0, 1.0000000000000002, inf, nan)


def test_python_and_sql_agree(engine: Engine, tmp_path: Path) -> None:
    """An intent has arrived in the diff exactly if it has for the stages; 9.0 was verified."""
    actual, ledger, arrived = [], [], set()
    for number, (intended, stored) in enumerate(product(VALUES, VALUES)):
        row = (CLUSTER, f"user=u{number:02}", "producer_byte_rate")
        noted = LedgerRow(*row, intended, INTENDED, None, None, None, "r2", "t2", 2)
        ledger += [noted, LedgerRow(*row, 9.0, VERIFIED, None, None, None, "r1", "t1")]
        actual += [] if stored is None else [ActualRow(*row, stored, True, None)]
        if has_arrived(noted, stored):
            arrived.add(noted.id)
    folder = put(tmp_path, CLUSTER, actual=actual, ledger=ledger)

    diff_runs(engine, [open_place(folder)])

    found = differences(folder)
    assert len(found) == len(VALUES) ** 2
    assert {row.id for row in found if row.kind in {Kind.REMOVED, Kind.CLEARED}} == arrived
