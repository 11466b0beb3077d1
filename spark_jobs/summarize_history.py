"""Summarize the history of all clusters: `spark-submit summarize_history.py RUN_STORE`."""

import sys
from contextlib import ExitStack
from datetime import UTC, datetime

from quota_ops.model.errors import InvalidInput, QuotaOpsError
from quota_ops.sql.history import summarize_history
from quota_ops.sql.history_engines import EngineBySize
from quota_ops.sql.spark import SparkEngine, job_session
from quota_ops.store.places.run_store import RunStore, open_place

__all__ = ["main"]

_NAME_IT = "Pass its folder, or its address in a bucket: quota-ops ping --run-store reads it."


def main(run_store: str) -> None:
    """Compact the past days of the history, and continue its summary with what is new.

    Spark starts only if what is new is large. Prints each file that cannot be read and exits with
    code 2 then; the others are summarized.
    """
    try:
        with ExitStack() as started:
            engine = EngineBySize(
                lambda: SparkEngine(started.enter_context(job_session("quota-ops history")))
            )
            store = RunStore(open_place(run_store))
            if not store.root.entries():
                raise InvalidInput(f"the run store {run_store} is missing or empty", _NAME_IT)
            found = summarize_history(engine, store, datetime.now(UTC))
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    sys.stdout.write(f"{found.as_text()}\n")
    if found.troubles:
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1])
