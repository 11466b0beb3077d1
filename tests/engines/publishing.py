"""A program that publishes an attempt for one run, and may die before one of its steps.

python -m tests.engines.publishing PLACE [STEP]
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from quota_ops.model.quotas.rows import Side
from quota_ops.sql.attempt import DiffAttempt
from quota_ops.sql.job import RESULTS, ComparedRun
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place

STEPS = ("create", "delete", "replace", "replace")
"""What an attempt asks of the store to become the result of a run, in order."""
CLUSTER = "c"


def list_results(entity: str) -> list[bytes]:
    """Return the files of RESULTS with one difference of an entity, and one batch."""
    values = {"cluster": CLUSTER, "entity": entity, "key": "producer_byte_rate", "batch": 1}
    values |= {"kind": "pending", "action": "set", "after": 1.0, "value": 1.0}
    values |= {"declared_entity": entity, "declared": 2.0, "file": "team.yaml", "line": 1}
    values |= {"side": Side.UNMANAGED}
    rows = [[values.get(name) for name in table.names] for table in RESULTS]
    return [
        parquet.to_bytes(table, parquet.from_rows(table, [row]))
        for table, row in zip(RESULTS, rows, strict=True)
    ]


def read_entities(folder: Place) -> list[str | None]:
    """Return the entity in each result of a run folder; None for a result that is missing."""
    return [
        parquet.from_bytes(table, place.read(), str(place))["entity"][0].as_py()
        if (place := folder / table.file).exists()
        else None
        for table in RESULTS
    ]


def main(address: str, last: int) -> None:
    """Publish the entity `new`, and die before step `last`, from 0."""
    folder = open_place(address)
    with DiffAttempt.begin([ComparedRun(CLUSTER, folder)]) as attempt:
        attempt.place.below("_compared/folder=0/part-0.parquet").replace(b"of Spark")
        results, done = list_results("new"), 0

        def die_at_last(act: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any) -> Any:
                nonlocal done
                if done == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                done += 1
                return act(*arguments)

            return step

        kind: Any = type(folder)
        for name in set(STEPS):
            setattr(kind, name, die_at_last(getattr(kind, name)))
        attempt.publish(0, results)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1)
