"""The effects of a change on the clients of an inventory, by Spark."""

import logging

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from quota_ops.model.moment import timed
from quota_ops.model.plans.client_effects import CLIENT_EFFECTS, INVENTORY, OwnerEffects
from quota_ops.precedence.resolution import LIMITS
from quota_ops.sql import text
from quota_ops.sql.attempt import delete_tree
from quota_ops.sql.client_effects import UNLIMITED_KEYS
from quota_ops.sql.inventory import Inventory, explain_wrong_clients
from quota_ops.sql.job import EngineFailed
from quota_ops.sql.spark import change_settings, hadoop_uri, spark_schema
from quota_ops.sql.spark_connect import explain_failure
from quota_ops.store.places.place import Place

_log = logging.getLogger(__name__)
_KEPT = ("_classes", "_class_effects", "_used")
"""The folders of rows that are computed once; readers skip names with an underscore."""
_NO_USAGE = (
    "SELECT '' AS key, '' AS shared_user, '' AS shared_id, CAST(NULL AS DOUBLE) AS used LIMIT 0"
)
_SPLIT_BYTES = {".csv": 16_000_000, ".jsonl": 32_000_000, ".parquet": 2_000_000}
"""Bytes of an inventory that a task reads: a few hundred thousand clients, which it then sorts."""
MOST_BROADCAST = 500_000
"""Rows of class_effects, about 100 MB, that each executor may keep in memory."""


class SparkEffects:
    """Compares the limits of the clients of an inventory on a Spark session.

    `multi_line` allows line breaks inside the cells of a CSV file; one task then reads a file.
    """

    def __init__(self, spark: SparkSession, *, multi_line: bool = False) -> None:
        self._spark = spark
        self._multi_line = multi_line

    def compare_limits(
        self, inventory: Inventory, before: pa.Table, after: pa.Table, to: Place
    ) -> tuple[OwnerEffects, ...]:
        """Write CLIENT_EFFECTS below `to`, each part sorted; return the numbers by owner.

        No client is moved between tasks, however many a user has; only the check for clients with
        several lines does that.
        """
        split = _SPLIT_BYTES[inventory.suffix]
        settings = {"spark.sql.files.maxPartitionBytes": str(split)}
        needed, partitions = 2 + inventory.bytes // split, "spark.sql.shuffle.partitions"
        if int(self._spark.conf.get(partitions) or 0) < needed:
            settings[partitions] = str(needed)
        try:
            with change_settings(self._spark, settings):
                self._create_inventory(inventory)
                known = self._spark.createDataFrame(UNLIMITED_KEYS)
                known.createOrReplaceTempView("quota_keys")
                for name, rows in (("limits_before", before), ("limits_after", after)):
                    limits = self._spark.createDataFrame(_plain(rows), spark_schema(LIMITS))
                    limits.createOrReplaceTempView(name)
                with timed(_log, logging.DEBUG, "the effects in Spark"):
                    return self._write_effects(inventory, to)
        except (PySparkException, Py4JJavaError) as error:
            why = explain_failure(error)
            raise EngineFailed(f"Spark cannot compare the limits of clients: {why}") from error

    def _create_inventory(self, inventory: Inventory) -> None:
        """Create the view inventory; NotClients for the first line that is not a client."""
        try:
            self._read(inventory).createOrReplaceTempView("lines")
            self._spark.sql(text.inventory_text()).createOrReplaceTempView("inventory")
            (found,) = self._spark.sql(text.wrong_clients_text()).collect()
        except (PySparkException, Py4JJavaError) as error:
            _log.debug("Spark cannot read the inventory: %s", error)
            raise explain_wrong_clients(inventory, None) from error
        wrong, *repeated = found
        if wrong or repeated[0] is not None:
            known = (repeated[0], repeated[1]) if repeated[0] is not None else None
            raise explain_wrong_clients(inventory, known)

    def _write_effects(self, inventory: Inventory, to: Place) -> tuple[OwnerEffects, ...]:
        spark = self._spark
        spark.sql(text.read_sql("client_classes")).createOrReplaceTempView("classified")
        self._keep("classes", text.read_sql("classes"), to / "_classes")
        number = self._keep("class_effects", text.class_effects_text(), to / "_class_effects")
        if number <= MOST_BROADCAST:
            spark.table("class_effects").hint("broadcast").createOrReplaceTempView("class_effects")
        self._keep(
            "used", text.client_usage_text() if inventory.has_rates else _NO_USAGE, to / "_used"
        )
        found = spark.sql(text.client_effects_text()).toDF(*CLIENT_EFFECTS.names)
        found.createOrReplaceTempView("client_effects_found")
        rows = found.sortWithinPartitions("user", "client-id", "key")
        rows.write.mode("append").parquet(hadoop_uri(to))
        written = spark.read.schema(spark_schema(CLIENT_EFFECTS)).parquet(hadoop_uri(to))
        spelled = {"user": "user_name", "client-id": "client_id"}
        written.withColumnsRenamed(spelled).createOrReplaceTempView("client_effects")
        owners = spark.sql(text.read_sql("owner_effects")).collect()
        for name in _KEPT:
            delete_tree(to / name)
        return tuple(OwnerEffects(*row) for row in owners)

    def _keep(self, name: str, sql: str, to: Place) -> int:
        """Create a view of rows that are computed once, and return their number."""
        found = self._spark.sql(sql)
        found.write.parquet(hadoop_uri(to))
        kept = self._spark.read.schema(found.schema).parquet(hadoop_uri(to))
        kept.createOrReplaceTempView(name)
        return kept.count()

    def _read(self, inventory: Inventory) -> DataFrame:
        read = self._spark.read.option("mode", "FAILFAST")
        read = read.option("ignoreCorruptFiles", False).option("ignoreMissingFiles", False)
        paths = [hadoop_uri(file) for file in inventory.files]
        schema = ", ".join(f"`{name}` STRING" for name in inventory.columns)
        if inventory.suffix == ".csv":
            rows = read.csv(
                paths,
                schema=schema,
                header=True,
                enforceSchema=False,
                quote='"',
                escape='"',
                multiLine=self._multi_line,
            )
        elif inventory.suffix == ".jsonl":
            rows = read.schema(schema).json(paths)
        else:
            rows = read.parquet(*paths)
        names = ((name, name.replace("client-id", "client_id")) for name in INVENTORY.names)
        return rows.selectExpr(
            *(
                f"{f'`{name}`' if name in inventory.columns else 'CAST(NULL AS STRING)'} AS "
                f"{'user_name' if name == 'user' else spelled}"
                for name, spelled in names
            )
        )


def _plain(rows: pa.Table) -> pa.Table:
    """Return a table whose texts are not REPEATED, in one chunk, which Spark needs."""
    fields = [
        field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields)).combine_chunks()
