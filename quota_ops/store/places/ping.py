"""Tests a run store: its permissions, its speed, and whether exactly one of many writers wins."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from uuid import uuid4

from quota_ops.model.clusters.ping import Operation, StorePing
from quota_ops.model.errors import Denied, InvalidInput
from quota_ops.model.moment import iso_utc
from quota_ops.store.places.place import Place, measure_lead
from quota_ops.store.places.run_store import RunStore

RACERS, NUMBERS = 8, 16
"""How many writers try to create each number at the same moment, and how many numbers."""
_AT_ONCE = 32
_TIMES = 10
_CONTENT = b"A test by quota-ops ping; it may be deleted.\n"


def ping_store(store: RunStore) -> StorePing:
    """Try every operation in a folder of its own, race writers, and delete what was written.

    If a number does not have exactly one winner, a file stays, and no later run writes here until
    a ping of the repaired store deletes it. Raises InvalidInput if the store cannot be used at all:
    there is no such bucket, it cannot be reached, or the credentials are wrong.
    """
    is_empty, missing = _is_empty(store.root), _list_missing(store.root)
    folder = store.root / "ping" / uuid4().hex
    timed = [folder / f"timed-{number:02d}" for number in range(_TIMES)]
    raced = [folder / f"raced-{number:02d}" for number in range(NUMBERS)]
    winners: tuple[int, ...] = ()
    lead = 0.0
    written: list[Place] = []
    listed = _try("list", [folder.list] * _TIMES)
    if listed.error is not None:
        with suppress(Denied):
            store.root.list()  # raises any other error, with its remedy
    try:
        created = _try("create", [partial(place.create, _CONTENT) for place in timed])
        replaced = _try("replace", [partial(place.replace, _CONTENT) for place in timed])
        read = _try("read", [partial(_read, place) for place in timed])
        if not created.error:
            lead = measure_lead(timed[-1])
            written += raced
            winners = tuple(_race(raced))
        written += [] if created.error and replaced.error else timed
        deleted = _try("delete", [place.delete for place in timed if written])
    finally:
        left = _delete(written, folder)
        with suppress(InvalidInput, OSError):
            for place in missing:
                place.delete_folder()
    operations = (listed, read, created, replaced, deleted)
    ping = StorePing(str(store.root), operations, RACERS, winners, left, is_empty, lead)
    _record_race(store, ping)
    return ping


def _is_empty(root: Place) -> bool:
    """Return whether nothing is stored here; False if there is no permission to list."""
    with suppress(InvalidInput):
        return not root.entries()
    return False


def _list_missing(place: Place) -> list[Place]:
    """Return the folders that a test creates: a place that does not exist, and those above it."""
    missing: list[Place] = []
    with suppress(InvalidInput):
        while place.key and not place.exists():
            missing.append(place)
            place = place.parent
    return missing


def _try(name: str, calls: Iterable[Callable[[], object]]) -> Operation:
    """Time calls of one operation, until one fails."""
    seconds: list[float] = []
    for call in calls:
        began = time.perf_counter()
        try:
            call()
        except InvalidInput as error:
            return Operation(name, (), error.message.rpartition(": ")[2])
        except OSError as error:
            return Operation(name, (), error.strerror)
        seconds.append(time.perf_counter() - began)
    return Operation(name, tuple(seconds))


def _read(place: Place) -> None:
    with suppress(FileNotFoundError):  # not created, but reading was not refused
        place.read()


def _race(places: Iterable[Place]) -> Iterator[int]:
    """Let several writers create each place at the same moment; yield how many succeeded.

    Another one comes when they are done: it succeeds wherever creates overwrite, although of the
    writers before it, each that was overwritten immediately knows that another one won.
    """
    raced = list(places)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        races = [[pool.submit(place.create, _CONTENT) for _ in range(RACERS)] for place in raced]
        for place, writers in zip(raced, races, strict=True):
            yield sum(writer.result() for writer in writers) + place.create(_CONTENT)


def _delete(places: Sequence[Place], folder: Place) -> str | None:
    """Delete the files and their folders; return the address of the folder if one may remain."""
    if not places:
        return None
    with suppress(InvalidInput):
        places = [folder.below(leaf.path) for leaf in folder.walk()]
    try:
        for place in places:
            place.delete()
        for empty in (folder, folder.parent):
            if not empty.entries():
                empty.delete_folder()
    except FileNotFoundError:
        return None
    except (InvalidInput, OSError):
        return str(folder)
    return None


def _record_race(store: RunStore, ping: StorePing) -> None:
    """Write the file that stops later runs if the store is not safe; delete it if it is safe."""
    if ping.is_safe is False:
        result = {"at": iso_utc(), "racers": ping.racers, "winners": ping.winners}
        store.failed_race.replace(json.dumps(result).encode(), durable=True)
    elif ping.is_safe and store.failed_race.exists():
        store.failed_race.delete()
