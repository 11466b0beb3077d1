"""A snapshot of a cluster in the cluster's place: described, and never asked for anything else."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from quota_ops.model.errors import InvalidInput
from quota_ops.model.rows import StoredQuota
from quota_ops.model.snapshot import SnapshotHeader, read_header, read_snapshot


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a file that `describe --format jsonl` wrote says that a cluster holds."""

    place: str
    rows: tuple[StoredQuota, ...]
    header: SnapshotHeader
    brokers: tuple[()] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; InvalidInput with the line that is no row, or why it cannot be read.

        An empty file, as a describe that failed leaves it, is no cluster without quotas: that has
        a header.
        """
        place, lines = str(path), read_lines(path)
        if not any(map(str.strip, lines)):
            raise InvalidInput(
                f"{place} is empty: the describe that was to write it seems to have failed.",
                "Write it again: quota-ops describe CLUSTER --format jsonl",
            )
        rows, header = read_snapshot(lines, place), read_header(lines, place)
        header.require_rows(len(rows), place)
        return cls(place, rows, header)

    @property
    def cluster_id(self) -> str | None:
        """The id of its cluster; None where the file names none."""
        return self.header.cluster_id

    def require_cluster(self, cluster_id: str) -> Self:
        """Return the snapshot; InvalidInput when it is of another cluster."""
        self.header.require_cluster(cluster_id, self.place)
        return self

    def require_all(self) -> Self:
        """Return the snapshot; InvalidInput when rows were left out of it."""
        self.header.require_all(self.place)
        return self

    def describe(self, broker: int | None = None) -> tuple[StoredQuota, ...]:
        """Give the rows, as a cluster would."""
        del broker
        return self.rows

    def facts_aside(self) -> Callable[[], None]:
        """Know nothing of brokers."""
        return lambda: None

    def metadata_aside(self) -> Callable[[], None]:
        """Know nothing of controllers."""
        return lambda: None


def read_lines(path: Path) -> list[str]:
    """The lines of a file that a person named; InvalidInput when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8") from None
