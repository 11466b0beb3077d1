"""Measure speed and memory on a real broker; `python -m tests.benchmarks [CASE ...] [--runs N]`.

Prints a table; keeps it in RESULTS.md beside this file when every case ran, or with --keep.
"""

import argparse
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from quota_ops.lab.kafka.broker import start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.cases import CASES
from tests.benchmarks.measure import adopt_orphans, machine
from tests.broker_config import generate_cluster_id

KEPT = Path(__file__).with_name("RESULTS.md")
INTRODUCTION = """\
# Benchmarks

What `make bench` measured last. Times are whole processes; a ratio is taken pair by pair, both
programs in turn, and is the number to trust on a shared machine. Medians, with the lowest and the
highest in brackets. The bare program is `tests/benchmarks/peers/bare.py`: it reads the same YAML,
compares by a dictionary and keeps nothing.
"""


def main() -> None:
    """Run the named cases, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="which; default: all")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="keep the table of some cases too")
    given = parser.parse_args()
    adopt_orphans()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="quota-ops-bench-") as home:
        kafkas_own = {"controller.quorum.append.linger.ms": "25"}
        config = BrokerConfig(cluster_id=generate_cluster_id(), heap="2g", properties=kafkas_own)
        with start_broker(config, Path(home) / "broker") as broker:
            bench = Bench(broker, Path(home), given.runs)
            for name in given.cases or CASES:
                for row in CASES[name](bench):
                    print(_line(row), flush=True)
                    rows.append(row)
    if given.keep or not given.cases:
        KEPT.write_text(f"{INTRODUCTION}\n{_made()}\n\n{_table(rows)}", encoding="utf-8")


def _line(row: Row) -> str:
    return f"{'ok  ' if row.met else 'MISS'}  {row.what}: {row.measured} (target {row.target})"


def _table(rows: list[Row]) -> str:
    lines = [f"| {row.what} | {row.measured} | {row.target} | {_met(row)} |" for row in rows]
    return "\n".join(
        ["| what | measured | target | met |", "| --- | --- | --- | --- |", *lines, ""]
    )


def _met(row: Row) -> str:
    return "yes" if row.met else "**no**"


def _made() -> str:
    found = machine() | {
        name: version(name) for name in ("pyspark", "duckdb", "kafka-python", "pyarrow")
    }
    told = ", ".join(f"{name} {value}" for name, value in found.items())
    return f"{datetime.now(UTC):%Y-%m-%d}; {told}; Kafka 4.3.1 on the same machine."


if __name__ == "__main__":
    main()
