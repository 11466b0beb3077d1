"""Compare limits of clients: `spark-submit compare_effective_limits.py RUN_FOLDER...`."""

from argparse import ArgumentParser

from quota_ops.sql.client_effects import compare_runs
from quota_ops.sql.spark import job_session
from quota_ops.sql.spark_effects import SparkEffects
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder

__all__ = ["main"]


def main(folders: list[str], *, multi_line: bool = False) -> None:
    """Write which clients the differences of each run affect; spark-submit sets the master.

    A run whose cluster.yaml names no inventory is left out. If an inventory is wrong, the other
    runs get their results, and the job prints each wrong one with its line and exits with code 2.
    """
    with job_session("quota-ops effects") as spark:
        runs = [RunFolder(open_place(folder)) for folder in folders]
        compare_runs(SparkEffects(spark, multi_line=multi_line), runs)


if __name__ == "__main__":
    parser = ArgumentParser(description="Write which clients the differences of runs affect.")
    parser.add_argument("folders", nargs="+", metavar="RUN_FOLDER")
    parser.add_argument(
        "--multi-line",
        action="store_true",
        help="cells of a CSV inventory may have line breaks; one task then reads a file",
    )
    main(**vars(parser.parse_args()))
