"""A site's own spark-submit on the PATH, which records the command that it gets."""

import json
import os
from pathlib import Path

import pytest

SUBMIT = "spark3-submit"
"""One of the names that Airflow's Spark provider accepts."""


def record_command(folder: Path, patch: pytest.MonkeyPatch, then: str = "") -> Path:
    """Put it on the PATH, to run the program `then` with the same arguments; return its record."""
    record, script = folder / "command.txt", folder / SUBMIT
    script.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$@" "in $PYSPARK_DRIVER_PYTHON" > {record}\n'
        f'test -z "{then}" || exec "{then}" "$@"\n'
    )
    script.chmod(0o700)
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return record


def set_connection(patch: pytest.MonkeyPatch, host: str, /, **extra: object) -> None:
    """Define the Airflow connection to Spark."""
    conn = {"conn_type": "spark", "host": host, "extra": extra}
    patch.setenv("AIRFLOW_CONN_QUOTA_OPS_SPARK", json.dumps(conn))


def set_server(patch: pytest.MonkeyPatch, **fields: object) -> None:
    """Replace that connection by one to a Spark Connect server, with it as the fallback `cold`.

    A dead server fails at once.
    """
    patch.setenv("AIRFLOW_CONN_COLD", os.environ["AIRFLOW_CONN_QUOTA_OPS_SPARK"])
    conn = {"conn_type": "spark_connect", "host": "localhost", **fields}
    patch.setenv("AIRFLOW_CONN_QUOTA_OPS_SPARK", json.dumps(conn))
    patch.setattr("quota_ops.sql.spark_connect._RETRIES", 0)
