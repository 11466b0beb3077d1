"""What a case measures with, and the rows that it returns."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quota_ops.lab.kafka.broker import RunningBroker
from tests.benchmarks.measure import Pair, Sample, Spread, run
from tests.benchmarks.peers import bare


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    measured: str
    target: str
    met: bool


@dataclass(frozen=True)
class Bench:
    """The place of a benchmark: a broker, a folder of its own, and the number of runs."""

    broker: RunningBroker
    home: Path
    runs: int

    @property
    def cluster(self) -> Path:
        """The folder of the cluster `bench`."""
        return self.home / "desired_state" / "bench"

    def environment(self) -> dict[str, str]:
        """Return an environment with all files in this folder and none in the user's home."""
        connection = self.home / "bench.properties"
        connection.write_text(f"bootstrap.servers={self.broker.bootstrap()}\n")
        return {
            "QUOTA_OPS_RUN_STORE": str(self.home / "store"),
            "QUOTA_OPS_CONNECTION_BENCH": str(connection),
            "QUOTA_OPS_DESIRED_STATE": str(self.cluster.parent),
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }

    def quota_ops(self, *arguments: str, **environment: str) -> Sample:
        """Run the command line once."""
        command = [str(Path(sys.executable).with_name("quota-ops")), *arguments]
        return run(command, self.environment() | environment)

    def bare(self, *arguments: str) -> Sample:
        """Run the bare program once."""
        given = (str(self.cluster), self.broker.bootstrap())
        return run([sys.executable, bare.__file__, *given, *arguments])


def row_of_seconds(what: str, once: Callable[[], Sample], runs: int, target: float) -> Row:
    """Run a command several times after one warm-up; the row has its wall time."""
    once()
    spread = Spread.of([once().wall for _ in range(runs)])
    return Row(what, spread.text(" s"), f"under {target} s", spread.median < target)


def row_to_bare(what: str, measured: Pair, target: float) -> Row:
    """Compare quota-ops with the bare program by wall time; CPU time is beside it."""
    wall, bare_wall = measured.ratio("wall"), measured.spread("wall", other=True).median
    cpu = measured.ratio("cpu").median
    return Row(
        f"{what}: to the bare program ({bare_wall:.2f} s)",
        f"{wall.text(' times')}, CPU {cpu:.2f}",
        f"{target:g} times",
        wall.median <= target,
    )
