"""Digests of the use of many clusters from files of samples, by Spark."""

from collections.abc import Iterator
from typing import NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from quota_ops.model.usage.digest import BUCKETS
from quota_ops.model.usage.series import time_of
from quota_ops.sql import text
from quota_ops.sql.embedded_usage import add_seen, pack_series
from quota_ops.sql.job import EngineFailed
from quota_ops.sql.spark_connect import explain_failure
from quota_ops.store.history.digests import write_digest
from quota_ops.store.places import parquet
from quota_ops.store.places.run_store import RunStore
from quota_ops.usage.scrapes import find_seen

_CLIENT = ("broker", "key", "user_name", "client_id")


class SampleFiles(NamedTuple):
    """Paths of Parquet with the samples of a day, as Spark reads them.

    `rates` and `throttle_times` have the columns `cluster` (Kafka's id), `time`, `broker`, `key`,
    `user_name`, `client_id` and `value`; `scrapes` has `cluster`, `time`, `broker` and `up`. Names
    are Kafka's, and null if a series has no such label. A throttle time above 0 that is not NaN is
    a throttled client.
    """

    rates: str
    scrapes: str
    throttle_times: str


def digest_samples(
    spark: SparkSession, files: SampleFiles, day: str, step: int, store: RunStore
) -> Iterator[str]:
    """Write the digest of a day (`2026-11-25`) of each cluster, and yield the cluster's id.

    `step` is how many seconds pass between two scrapes at most. Raises EngineFailed if Spark cannot
    read the files; the digests of the clusters before are written then.
    """
    try:
        rates, throttle_times = (
            spark.read.parquet(path).where(f"to_date(time) = '{day}'")
            for path in (files.rates, files.throttle_times)
        )
        scrapes = spark.read.parquet(files.scrapes).where(f"to_date(time) = '{day}'")
        delayed = throttle_times.where("value > 0 AND NOT isnan(value)")
        clusters = sorted(row.cluster for row in rates.select("cluster").distinct().collect())
        for cluster in clusters:
            views: dict[str, DataFrame] = {
                "rates": rates.drop_duplicates(["cluster", "time", *_CLIENT]),
                "scrapes": scrapes,
                "delayed": delayed.select("cluster", *_CLIENT).distinct(),
            }
            for name, rows in views.items():
                rows.where(rows.cluster == cluster).createOrReplaceTempView(name)
            buckets = spark.sql(text.digest_text(day, step)).toArrow()
            seen = find_seen(spark.table("scrapes").toArrow(), step, time_of(day))
            series = pack_series(parquet.conform(BUCKETS, buckets))
            write_digest(store, cluster, day, add_seen(day, [series], seen))
            yield cluster
    except (PySparkException, Py4JJavaError) as error:
        raise EngineFailed(f"Spark cannot digest the use: {explain_failure(error)}") from error
