"""A program that runs the reconcile DAG once, with a separate Airflow."""

import sys
from pathlib import Path

import pytest

from tests.dag.embedded import compare_embedded
from tests.dag.repository import Repository


def main() -> None:
    """Print that all is ready, wait for a line, run, and print how the run ended."""
    from airflow.utils.db import initdb

    initdb()
    repository = Repository(Path(sys.argv[1]))
    repository.dags()
    print("ready", flush=True)  # noqa: T201 - to the test
    input()
    with pytest.MonkeyPatch.context() as patch:
        compare_embedded(patch)
        run = repository.run("reconcile_demo", allow=["unlimited"], reason="a test")
    print(f"ended {run.state}", flush=True)  # noqa: T201 - to the test


if __name__ == "__main__":
    main()
