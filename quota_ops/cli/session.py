"""The inputs of a command: a cluster by its name, the run store, and the stored quotas."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quota_ops.cli.console import warn_invalid, warn_unnamed
from quota_ops.desired.pauses import find_pause
from quota_ops.desired.read import Desired, find_cluster, read_cluster, read_policy
from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import WRITES
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup
from quota_ops.model.quotas.rows import DesiredRow
from quota_ops.model.quotas.tables import ACTUAL, DIFFERENCES
from quota_ops.model.runs.progress import ConcurrentWrite
from quota_ops.model.text import command
from quota_ops.runs.concurrent_writes import find_concurrent_writes
from quota_ops.store.ledger import ledger
from quota_ops.store.ledger.holds import holds_now
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ClusterStore, RunStore, find_run_store
from quota_ops.store.places.snapshot import Snapshot
from quota_ops.store.run.files import POLICY
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.names import (
    LAST,
    find_first,
    find_last_write,
    find_run,
    latest_first,
    read_id,
)

if TYPE_CHECKING:
    from quota_ops.desired.export.one_off import OneOff
    from quota_ops.kafka.cluster import Cluster


class Session(Struct, frozen=True, dict=True):
    """What a command on one cluster works with, read when it is first needed.

    A CLUSTER is its name, or the path of its folder. Raises InvalidInput if there is none.
    """

    cluster: str | None
    desired_state: Path
    run_store: str | None = None
    connection_file: Path | None = None

    @cached_property
    def folder(self) -> Path:
        """The folder of the cluster."""
        if self.cluster is None:
            raise InvalidInput(
                "no cluster is specified", "Pass a CLUSTER, or a snapshot with --actual FILE."
            )
        return find_cluster(self.cluster, self.desired_state)

    @cached_property
    def policy(self) -> Policy:
        """Its cluster.yaml; no other file is read."""
        return read_policy(self.folder)

    @cached_property
    def store(self) -> RunStore:
        """The run store."""
        return find_run_store(self.run_store)

    @property
    def heading(self) -> str:
        """The name of the cluster for headings."""
        return f"{self.policy.cluster} ({self.policy.cluster_id})"

    @property
    def records(self) -> ClusterStore:
        """The ledger, claims, holds and approvals of the cluster."""
        return self.store.of_cluster(self.policy.cluster_id)

    def find_connection(self) -> Connection:
        """Find the connection to the cluster. Raises InvalidInput if there is none."""
        return find_connection(self.policy.connection, file=self.connection_file)

    def find_run(self, named: str) -> RunFolder:
        """Return a run of the cluster. Raises InvalidInput for a run of another cluster id."""
        name = named if "/" in named else f"{self.policy.cluster}/{named}"
        folder = find_run(self.store, name, own=self.policy.cluster_id)
        if folder.has(POLICY) and folder.policy().cluster_id != self.policy.cluster_id:
            raise InvalidInput(
                f"run {folder.place.name} belongs to a different cluster than {self.heading}",
                f"List the runs of this one: {command('runs', self.policy.cluster)}",
            )
        return folder

    def find_alter(self, named: str) -> RunFolder:
        """Return a run of the cluster as `find_run` does; `last` is its last alter that wrote."""
        cluster = self.policy.cluster
        if named not in {LAST, f"{cluster}/{LAST}"}:
            return self.find_run(named)
        found = find_last_write(self.store, cluster, self.policy.cluster_id, is_alter=True)
        if found is None:
            raise InvalidInput(
                f"no alter has changed {self.heading}", f"List its runs: {command('runs', cluster)}"
            )
        return found

    def find_writes(self, accepts: Callable[[Entity], bool]) -> tuple[ConcurrentWrite, ...]:
        """Find the current writes of other runs to the accepted entities."""
        return find_concurrent_writes(self.store, self.policy.cluster_id, accepts)

    def compare_git(self, desired: Desired) -> "OneOff":
        """Compare stored values with these files, and the ledger, holds and pause as of now."""
        from quota_ops.desired.export.one_off import OneOff

        known, holds = ledger.read(self.records).rows, holds_now(self.records.holds)
        return OneOff(desired, known, holds, find_pause(desired.policy, datetime.now(UTC)))

    def find_group(self, given: Mapping[str, str | None], *, is_release: bool) -> EntityGroup:
        """Find the entities of an `owner` or `file` in Git and the ledger, or those a `run` writes.

        Of an invalid file, only the ledger has entities. A release names the group alone. Raises
        InvalidInput unless exactly one is given, and for a hold if there is no such entity.
        """
        named = [(kind, value) for kind, value in given.items() if value is not None]
        if len(named) != 1:
            raise InvalidInput("pass only one of --owner, --file and --run")
        (kind, value), *_ = named
        found: set[str] = set()
        if kind == "run":
            folder = self.find_run(value)
            value = folder.place.name
            if folder.has(DIFFERENCES.file):
                found = {row.entity for row in folder.differences() if row.action in WRITES}
        elif not is_release:
            in_git, written = self._read_valid_rows(), ledger.read(self.records).rows
            found = {row.entity for row in in_git if value == getattr(row, kind)}
            found |= {row.entity for row in written if value == getattr(row, kind)}
        if not found and not is_release:
            raise InvalidInput(
                f"there is no quota of --{kind} {value}",
                f"See {command('plan', self.policy.cluster)}, or name entities with --names.",
            )
        return EntityGroup(f"{kind} {value}", frozenset(found))

    def _read_valid_rows(self) -> tuple[DesiredRow, ...]:
        """Return the rows of the valid files; the user is warned of the others."""
        try:
            desired = read_cluster(self.folder, skip_invalid=True)
        except InvalidDesiredState:
            warn_invalid(self.policy.cluster, "no quotas file is valid")
            return ()
        for invalid in desired.invalid:
            warn_invalid(self.policy.cluster, f"{invalid.file} is invalid")
        return desired.rows

    def is_declared(self, who: EntityFilter | EntityGroup) -> bool:
        """Whether Git declares an entity that the filter accepts; True if its files are invalid."""
        try:
            rows = read_cluster(self.folder).rows
        except InvalidDesiredState:
            return True
        return any(who.accepts(Entity.parse(row.entity)) for row in rows)

    def is_managed(self, who: EntityFilter | EntityGroup) -> bool:
        """Whether the ledger has an entity that the filter accepts; True if it cannot be read."""
        try:
            rows = ledger.read(self.records).rows
        except InvalidInput:
            return True
        return any(who.accepts(Entity.parse(row.entity)) for row in rows)

    def was_stored(self, who: EntityFilter | EntityGroup) -> bool:
        """Whether the last run that described the cluster found an entity that the filter accepts.

        False if there is none, or if it cannot be read.
        """

        def has_described(run: Place) -> bool:
            return read_id(run) == self.policy.cluster_id and RunFolder(run).has(ACTUAL.file)

        with suppress(InvalidInput):
            runs = latest_first(self.store, self.store.runs(self.policy.cluster))
            if (run := find_first(runs, has_described)) is not None:
                rows = RunFolder(run).read_rows(ACTUAL)
                return any(who.accepts(Entity.parse(row.entity)) for row in rows)
        return False

    @contextmanager
    def open_source(self, actual: Path | None) -> Iterator[tuple["Cluster | Snapshot", str]]:
        """Open the cluster or snapshot that has the stored quotas; yield it and its name.

        With `actual`, the cluster is not queried and need not be named. If it is named, the
        snapshot must be of that cluster.
        """
        if actual is None:
            from quota_ops.kafka.cluster import open_policy  # 0.2 s, which a snapshot does not need

            with open_policy(self.policy, self.find_connection()) as opened:
                yield opened, self.heading
            return
        snapshot = Snapshot.read(actual)
        if self.cluster is not None:
            snapshot.require_cluster(self.policy.cluster_id)
            warn_unnamed(actual, snapshot.cluster_id, self.policy)
        yield snapshot, f"{actual} ({snapshot.cluster_id})" if snapshot.cluster_id else str(actual)
