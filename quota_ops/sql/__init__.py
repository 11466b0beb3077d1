"""The SQL that decides, and the two engines that run it: DuckDB and Spark."""
