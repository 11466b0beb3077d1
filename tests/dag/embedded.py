"""The diff on DuckDB, for DAG runs that test other tasks."""

from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.sql.job import diff_and_record
from quota_ops.store.places.run_store import open_place

OPERATOR = "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator"


def compare_embedded(patch: pytest.MonkeyPatch) -> None:
    """Run the task diff without Spark."""
    from airflow.sdk.exceptions import AirflowException

    def execute(self: Any, _context: Any) -> None:
        try:
            folders = self.application_args
            diff_and_record(EmbeddedEngine(), [open_place(folder) for folder in folders])
        except InvalidInput as error:
            raise AirflowException(str(error)) from error

    patch.setattr(f"{OPERATOR}.execute", execute)
    # It would hash 200 MB to find out that the archive of a JVM that does not start is undamaged.
    patch.setattr("quota_ops.sql.spark_archive.driver_options", str)
