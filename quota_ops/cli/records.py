"""What the records of a cluster tell a command: its runs, its ledger and who writes to it now."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from quota_ops.cli.console import warn_invalid
from quota_ops.cli.session import Session
from quota_ops.desired.export.one_off import OneOff
from quota_ops.desired.pauses import find_pause
from quota_ops.desired.read import Desired, read_cluster
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
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
from quota_ops.store.run import names
from quota_ops.store.run.files import POLICY
from quota_ops.store.run.folder import RunFolder


def find_run(session: Session, named: str) -> RunFolder:
    """Return a run of the cluster. Raises InvalidInput for a run of another cluster id."""
    name = named if "/" in named else f"{session.policy.cluster}/{named}"
    folder = names.find_run(session.store, name, own=session.policy.cluster_id)
    if folder.has(POLICY) and folder.policy().cluster_id != session.policy.cluster_id:
        raise InvalidInput(
            f"run {folder.place.name} belongs to a different cluster than {session.heading}",
            f"List the runs of this one: {command('runs', session.policy.cluster)}",
        )
    return folder


def find_alter(session: Session, named: str) -> RunFolder:
    """Return a run of the cluster as `find_run` does; `last` is its last alter that wrote."""
    cluster = session.policy.cluster
    if named not in {names.LAST, f"{cluster}/{names.LAST}"}:
        return find_run(session, named)
    found = names.find_last_write(session.store, session.policy.cluster_id, is_alter=True)
    if found is None:
        raise InvalidInput(
            f"no alter has changed {session.heading}", f"List its runs: {command('runs', cluster)}"
        )
    return found


def find_writes(session: Session, accepts: Callable[[Entity], bool]) -> tuple[ConcurrentWrite, ...]:
    """Find the current writes of other runs to the accepted entities."""
    return find_concurrent_writes(session.store, session.policy.cluster_id, accepts)


def compare_git(session: Session, desired: Desired) -> OneOff:
    """Compare stored values with these files, and the ledger, holds and pause as of now."""
    known, holds = ledger.read(session.records).rows, holds_now(session.records.holds)
    return OneOff(desired, known, holds, find_pause(desired.policy, datetime.now(UTC)))


def find_group(
    session: Session, given: Mapping[str, str | None], *, is_release: bool
) -> EntityGroup:
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
        folder = find_run(session, value)
        value = folder.place.name
        if folder.has(DIFFERENCES.file):
            found = {row.entity for row in folder.differences() if row.action in WRITES}
    elif not is_release:
        in_git, written = _read_valid_rows(session), ledger.read(session.records).rows
        found = {row.entity for row in in_git if value == getattr(row, kind)}
        found |= {row.entity for row in written if value == getattr(row, kind)}
    if not found and not is_release:
        raise InvalidInput(
            f"there is no quota of --{kind} {value}",
            f"See {command('plan', session.policy.cluster)}, or name entities with --names.",
        )
    return EntityGroup(f"{kind} {value}", frozenset(found))


def _read_valid_rows(session: Session) -> tuple[DesiredRow, ...]:
    """Return the rows of the valid files; the user is warned of the others."""
    try:
        desired = read_cluster(session.folder, skip_invalid=True)
    except InvalidDesiredState:
        warn_invalid(session.policy.cluster, "no quotas file is valid")
        return ()
    for invalid in desired.invalid:
        warn_invalid(session.policy.cluster, f"{invalid.file} is invalid")
    return desired.rows


def is_declared(session: Session, who: EntityFilter | EntityGroup) -> bool:
    """Whether Git declares an entity that the filter accepts; True if its files are invalid."""
    try:
        rows = read_cluster(session.folder).rows
    except InvalidDesiredState:
        return True
    return any(who.accepts(Entity.parse(row.entity)) for row in rows)


def is_managed(session: Session, who: EntityFilter | EntityGroup) -> bool:
    """Whether the ledger has an entity that the filter accepts; True if it cannot be read."""
    try:
        rows = ledger.read(session.records).rows
    except InvalidInput:
        return True
    return any(who.accepts(Entity.parse(row.entity)) for row in rows)


def was_stored(session: Session, who: EntityFilter | EntityGroup) -> bool:
    """Whether the last run that described the cluster found an entity that the filter accepts.

    False if there is none, or if it cannot be read.
    """

    def has_described(run: Place) -> bool:
        return names.read_id(run) == session.policy.cluster_id and RunFolder(run).has(ACTUAL.file)

    with suppress(InvalidInput):
        runs = names.latest_first(session.store, session.store.runs(session.policy.cluster))
        if (run := names.find_first(runs, has_described)) is not None:
            rows = RunFolder(run).read_rows(ACTUAL)
            return any(who.accepts(Entity.parse(row.entity)) for row in rows)
    return False
