"""The SQL of diffs, batches and effective limits, and the engines that run it: DuckDB and Spark."""
