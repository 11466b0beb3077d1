"""The holds of a cluster: a numbered file for each hold and release, and those in force now."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.approval import find_login
from quota_ops.model.plans.hold import Hold, find_hold, select_current_holds
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup
from quota_ops.model.quotas.rows import HoldRow
from quota_ops.model.quotas.tables import ACTUAL, DESIRED, LEDGER
from quota_ops.store.places.numbered_files import (
    create_next,
    encode,
    file_name,
    numbers,
    read_content,
)
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import AT_ONCE

KIND = "json"
"""The file type of holds."""


def read(folder: Place) -> tuple[Hold, ...]:
    """Return every hold and release of a cluster in order; empty if there is none.

    Raises InvalidInput if a file does not parse: a damaged hold must not count as ended.
    """
    files = [folder / file_name(number, KIND) for number in numbers(folder, KIND)]
    if len(files) < AT_ONCE:  # threads take longer to start
        return tuple(map(_read, files))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return tuple(pool.map(_read, files))


def list_ended(folder: Place, before: datetime) -> tuple[tuple[Place, ...], ...]:
    """Return the files of entities that no hold since a moment concerns, a group for each filter.

    Delete a group in its order: a release never goes before the hold that it ends. The newest file
    of all stays, so that no number is used again; so does everything if a file is damaged.
    """
    try:
        holds = read(folder)
    except InvalidInput:
        return ()
    last = {hold.who: hold for hold in holds}
    ended = {who for who, hold in last.items() if hold.at < before and hold.until < before}
    groups: dict[EntityFilter | EntityGroup, list[Place]] = {}
    for number, hold in zip(numbers(folder, KIND)[:-1], holds, strict=False):
        if hold.who in ended:
            groups.setdefault(hold.who, []).append(folder / file_name(number, KIND))
    return tuple(map(tuple, groups.values()))


def list_since(store: RunStore, cluster_ids: Iterable[str], day: str) -> tuple[Hold, ...]:
    """Return the holds and releases since a day (UTC), `2026-11-22`, of some clusters.

    Raises InvalidInput like `read`.
    """
    holds = (hold for name in sorted(cluster_ids) for hold in read(store.of_cluster(name).holds))
    return tuple(hold for hold in holds if iso_utc(hold.at)[:10] >= day)


def add(folder: Place, hold: Hold) -> Place:
    """Record a hold or a release after all earlier ones, which never change; return its file."""
    number = create_next(
        lambda number: folder / file_name(number, KIND),
        lambda _number: encode(Hold, hold),
        first=max(numbers(folder, KIND), default=0) + 1,
    )
    return folder / file_name(number, KIND)


def release(folder: Place, who: EntityFilter | EntityGroup, *, by: str, reason: str) -> Hold:
    """End a hold early. Raises InvalidInput if there is none on exactly these entities."""
    now = datetime.now(UTC).replace(microsecond=0)
    lasting = select_current_holds(read(folder), now)
    found = next((hold.who for hold in lasting if hold.who == who), None)
    if found is None:
        held = "; ".join(f"{hold.who.text}, {hold.text}" for hold in lasting)
        raise InvalidInput(f"{who.text} is not held", f"Current holds: {held or 'none'}.")
    ended = Hold(found, now, by, reason, now, find_login())
    add(folder, ended)
    return ended


def _read(file: Place) -> Hold:
    remedy = "Nothing was changed. Move the damaged file elsewhere, and hold its entities again."
    return read_content(file, Hold, remedy)


def holds_now(folder: Place) -> tuple[Hold, ...]:
    """Return the holds of a cluster that are in force now. Raises InvalidInput like `read`."""
    return select_current_holds(read(folder), datetime.now(UTC))


def held_entities(folder: RunFolder, cluster_id: str, lasting: Sequence[Hold]) -> Iterator[HoldRow]:
    """Yield the rows of HOLDS: each held entity that Git, the cluster or the ledger has."""
    if not lasting:
        return
    sides = (folder.read_table(table) for table in (DESIRED, ACTUAL, LEDGER))
    texts = {text for side in sides for text in side["entity"].to_pylist()}
    for text in sorted(texts):
        hold = find_hold(lasting, Entity.parse(text))
        if hold is not None:
            yield HoldRow(cluster_id, text, hold.text)


def held_among(entities: Iterable[str], folder: Place) -> Mapping[str, Hold]:
    """Return the given entities that are held now, with the hold on each."""
    lasting = holds_now(folder)
    found = {text: find_hold(lasting, Entity.parse(text)) for text in entities} if lasting else {}
    return {text: hold for text, hold in found.items() if hold is not None}
