"""The diff on DuckDB, for DAG runs that test other tasks."""

from typing import Any

import pytest

from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import diff_runs
from quota_ops.store.run_store import open_place

OPERATOR = "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator"


def compare_embedded(patch: pytest.MonkeyPatch) -> None:
    """Run the task diff without Spark."""

    def execute(self: Any, _context: Any) -> None:
        diff_runs(EmbeddedEngine(), [open_place(folder) for folder in self.application_args])

    patch.setattr(f"{OPERATOR}.execute", execute)
