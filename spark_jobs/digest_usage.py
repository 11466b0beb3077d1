"""Digest the use of many clusters: `spark-submit digest_usage.py RATES SCRAPES TIMES STORE DAY`."""

import sys
from argparse import ArgumentParser
from datetime import date

from quota_ops.sql.spark import job_session
from quota_ops.sql.spark_usage import SampleFiles, digest_samples
from quota_ops.store.places.run_store import RunStore, open_place

__all__ = ["main"]


def main(
    rates: str, scrapes: str, throttle_times: str, run_store: str, day: date, *, step: int = 60
) -> None:
    """Write the recorded day of each cluster into a run store; spark-submit sets the master.

    The first three are Parquet with the samples of Prometheus, as a data lake keeps them: the
    columns `cluster` (Kafka's id), `time`, `broker`, `key`, `user_name`, `client_id` and `value`,
    with Kafka's names; `scrapes` has `cluster`, `time`, `broker` and `up`. `step` is the scrape
    interval in seconds. `usage --recorded`, plans and pages read the days as those of `record`.
    """
    files = SampleFiles(rates, scrapes, throttle_times)
    with job_session("quota-ops digest") as spark:
        store = RunStore(open_place(run_store))
        store.prepare()
        for cluster in digest_samples(spark, files, day.isoformat(), step, store):
            sys.stdout.write(f"{cluster} {day}\n")


if __name__ == "__main__":
    parser = ArgumentParser(description="Write what the clients of many clusters used on a day.")
    for name in ("rates", "scrapes", "throttle_times", "run_store"):
        parser.add_argument(name)
    parser.add_argument("day", type=date.fromisoformat, help="for example 2026-11-25, in UTC")
    parser.add_argument("--step", type=int, default=60, help="seconds between two scrapes")
    main(**vars(parser.parse_args()))
