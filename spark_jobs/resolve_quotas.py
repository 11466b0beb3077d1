"""Resolve many clients on Spark: `spark-submit resolve_quotas.py SNAPSHOT CLIENTS OUTPUT`."""

import sys
from argparse import ArgumentParser

from quota_ops.model.errors import QuotaOpsError
from quota_ops.sql.resolve import resolve_clients
from quota_ops.sql.spark import SparkEngine, job_session
from quota_ops.store.places.snapshot import Snapshot

__all__ = ["main"]


def main(snapshot: str, clients: str, output: str) -> None:
    """Write the limits that apply to each client; spark-submit sets master and memory.

    Each argument is a path or s3://BUCKET/KEY. The output is a folder of parts.
    """
    stored = Snapshot.read(snapshot).require_all().rows
    with job_session("quota-ops resolve") as spark:
        resolve_clients(SparkEngine(spark), stored, clients, output)


if __name__ == "__main__":
    parser = ArgumentParser(description="Write which quota applies to each client of a file.")
    for name in ("snapshot", "clients", "output"):
        parser.add_argument(name)
    try:
        main(**vars(parser.parse_args()))
    except QuotaOpsError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
