"""A snapshot file in place of a cluster: it can be described, but has no other information."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.quotas.snapshot import SnapshotHeader, read_header, read_snapshot
from quota_ops.store.places.run_store import open_place


class Snapshot(Struct, frozen=True):
    """The quotas of a cluster, in a file that `describe --format jsonl` wrote."""

    place: str
    rows: tuple[StoredQuota, ...]
    header: SnapshotHeader
    brokers: tuple[()] = ()

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a file or object.

        Raises InvalidInput with the line that is not a row, or why it fails.

        An empty file, which a failed describe leaves, is not a cluster without quotas: the snapshot
        of such a cluster has a header.
        """
        place, lines = str(path), read_lines(path)
        if not any(map(str.strip, lines)):
            raise InvalidInput(
                f"{place} is empty: the describe that should have written it probably failed.",
                "Write it again: quota-ops describe CLUSTER --format jsonl",
            )
        rows, header = read_snapshot(lines, place), read_header(lines, place)
        header.require_rows(len(rows), place)
        return cls(place, rows, header)

    @property
    def cluster_id(self) -> str | None:
        """The id of its cluster; None if the file has none."""
        return self.header.cluster_id

    def require_cluster(self, cluster_id: str) -> Self:
        """Return the snapshot. Raises InvalidInput if it is of another cluster."""
        self.header.require_cluster(cluster_id, self.place)
        return self

    def require_all(self) -> Self:
        """Return the snapshot. Raises InvalidInput if rows were left out of it."""
        self.header.require_all(self.place)
        return self

    def describe(self, broker: int | None = None) -> tuple[StoredQuota, ...]:
        """Return the rows, as a cluster would."""
        del broker
        return self.rows

    def start_facts_query(self) -> Callable[[], None]:
        """Return a function that does nothing: a snapshot has no brokers."""
        return lambda: None

    def start_metadata_query(self) -> Callable[[], None]:
        """Return a function that does nothing: a snapshot has no controllers."""
        return lambda: None


def read_lines(path: Path | str) -> list[str]:
    """Return the lines of a file that a person named. Raises InvalidInput if it cannot be read."""
    try:
        if "://" in str(path):
            return open_place(path).read().decode().split("\n")
        return Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8") from None
