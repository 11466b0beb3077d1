"""The engine inside the process: DuckDB, for a person at a prompt or a pull request."""

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from quota_ops.frames import text
from quota_ops.model.tables import Table


class EmbeddedEngine:
    """Runs the texts on DuckDB; starts in milliseconds and needs no Java."""

    def decide(self, sides: Mapping[Table, Sequence[str]]) -> tuple[pa.Table, pa.Table]:
        """The tables DIFFERENCES and BATCHES of the union of each side's files."""
        with duckdb.connect() as db:
            for table, places in sides.items():
                db.read_parquet(list(places)).create_view(table.name)
            db.sql(text.diff_text()).create("differences")
            differences = db.table("differences").to_arrow_table()
            return differences, db.sql(text.batches_text()).to_arrow_table()
