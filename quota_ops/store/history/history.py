"""The files of the history: one for each end of a run, and one for each past day.

history/date=2026-11-22/CLUSTER@RUN@TIME-1.parquet  an end of a run
history/date=2026-11-22/day-0001.parquet            all ends of the day so far

Each is created once. The names of the ends that a day has follow from its rows, so that an end
that was recorded later is noticed; `compact` then creates the next file of the day.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import HISTORY, HistoryRow
from quota_ops.model.moment import iso_utc
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import MOST_ATTEMPTS, refused_create
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, safe_name

_DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)")
_DAY = re.compile(r"day-(\d{4,})\.parquet")
SEPARATOR = "@"
"""Between the parts of a file name; no safe name has it."""


_AT_ONCE = 16
GRACE = timedelta(hours=6)
"""How long files stay that a compacted day replaces, for commands that have listed them."""
_COMPACTED = "compacted"
_ORDER = ("cluster", "entity", "key", "ended", "run")


def append(store: RunStore, rows: Sequence[HistoryRow]) -> None:
    """Create the file of an end of a run; do nothing if it was recorded with the same rows.

    An end of the same second with other rows is the next revision, which replaces this one when
    the history is read. Raises InvalidInput as `Place.create`.
    """
    folder = day_folder(store, rows[0].ended[:10])
    for revision in range(1, MOST_ATTEMPTS):
        revised = [row._replace(revision=revision) for row in rows]
        content = parquet.to_bytes(HISTORY, parquet.from_rows(HISTORY, revised))
        run = revised[0]
        place = folder / _name_end(run.cluster, run.run, run.ended, revision)
        if place.create(content) or _has(place, content):
            return
    raise refused_create(folder / rows[0].ended)


def _has(place: Place, content: bytes) -> bool:
    try:
        return place.read() == content
    except OSError:  # it was compacted and deleted just now
        return False


def day_folder(store: RunStore, date: str) -> Place:
    """Return the folder of a day, such as 2026-11-22."""
    return store.history / f"date={date}"


def _name_end(cluster: str, run: str, ended: str, revision: int) -> str:
    names = SEPARATOR.join(map(safe_name, (cluster, run, ended.replace(":", "-"))))
    return f"{names}-{revision}.parquet"


@dataclass(frozen=True, slots=True)
class Day:
    """The files of a day of the history."""

    date: str
    folder: Place
    compacted: tuple[str, ...]
    """The names of its compacted files, the newest last."""
    ends: tuple[str, ...]
    """The names of the files of ends, compacted or not."""
    foreign: tuple[str, ...] = ()
    """The names of links, pipes and devices, which are never read."""
    size: int = 0
    """The bytes of its files, those of all clusters."""

    @property
    def newest(self) -> str | None:
        """The name of the newest compacted file."""
        return self.compacted[-1] if self.compacted else None

    def of_cluster(self, cluster: str | None) -> "Day":
        """Return the day with the ends of one cluster alone; of all without a name."""
        return self if cluster is None else self.of_clusters([cluster])

    def of_clusters(self, clusters: Iterable[str]) -> "Day":
        """Return the day with the ends of these clusters alone."""
        named = {safe_name(cluster) for cluster in clusters}
        ends = tuple(name for name in self.ends if name.partition(SEPARATOR)[0] in named)
        return replace(self, ends=ends)


@dataclass(frozen=True, slots=True)
class DayRows:
    """The rows of a day: those of its compacted file, then those of the ends that it lacks.

    `troubles` names each file that cannot be read, and why; its rows are missing.
    """

    compacted: pa.Table | None
    newer: tuple[pa.Table, ...]
    included: tuple[str, ...]
    """The names of the ends that the compacted file has."""
    troubles: tuple[str, ...]

    @property
    def tables(self) -> tuple[pa.Table, ...]:
        """All rows."""
        return (*(() if self.compacted is None else (self.compacted,)), *self.newer)


ReadDay = Callable[[Day], DayRows]
"""A function like `read_day`, which may keep what it has read."""


def list_days(store: RunStore) -> tuple[Day, ...]:
    """Return the days of the history in order. Raises InvalidInput if they cannot be listed."""
    found: dict[str, list[str]] = {}
    sizes: Counter[str] = Counter()
    foreign: dict[str, list[str]] = defaultdict(list)
    for leaf in store.history.walk():
        folder, _, name = leaf.path.partition("/")
        if not leaf.is_folder and (date := _DATE.fullmatch(folder)):
            names = found.setdefault(date[1], [])
            (names if leaf.is_own else foreign[date[1]]).append(name)
            sizes[date[1]] += leaf.size
    return tuple(
        Day(
            date,
            day_folder(store, date),
            tuple(sorted((name for name in names if _DAY.fullmatch(name)), key=_read_number)),
            tuple(name for name in names if SEPARATOR in name and name.endswith(".parquet")),
            tuple(foreign[date]),
            sizes[date],
        )
        for date, names in sorted(found.items())
    )


def name_foreign(days: Iterable[Day]) -> tuple[str, ...]:
    """Return a sentence for each file of some days that is not read because of what it is."""
    return tuple(
        f"{day.folder / name if name else day.folder} is a link, a pipe or a device"
        for day in days
        for name in day.foreign
    )


def _read_number(name: str) -> int:
    found = _DAY.fullmatch(name)
    return int(found[1]) if found else 0


def read_day(day: Day) -> DayRows:
    """Return the rows of a day."""
    troubles: list[str] = []
    compacted = None if day.newest is None else _read(day.folder / day.newest, troubles.append)
    included: tuple[str, ...] = ()
    if day.ends and compacted is not None:
        included = tuple(_list_ends(compacted))
    newer = sorted({*day.ends}.difference(included))
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        read = list(readers.map(lambda name: _read(day.folder / name, troubles.append), newer))
    tables = tuple(table for table in read if table is not None)
    return DayRows(compacted, tables, included, tuple(sorted(troubles)))


def _read(place: Place, report: Callable[[str], None]) -> pa.Table | None:
    try:
        return parquet.from_bytes(HISTORY, place.read(), str(place))
    except InvalidInput as error:
        report(error.message)
    except OSError as error:
        report(f"{place} cannot be read: {error.strerror}")
    return None


def _list_ends(rows: pa.Table) -> Iterator[str]:
    names = ("cluster", "run", "ended", "revision", "entity")
    columns = [parquet.to_values(rows[name]) for name in names]
    for *end, entity in zip(*columns, strict=True):
        if entity is None:
            yield _name_end(*end)


def compact(days: Iterable[Day], now: datetime) -> tuple[str, ...]:
    """Create a file of each past day whose newest one lacks an end; return what cannot be read.

    Files that it replaces are deleted later, when no command reads them any more. A day of which
    the compacted file cannot be read stays as it is. Raises InvalidInput as `Place.create`.
    """
    troubles: list[str] = []
    for day in days:
        if day.date >= f"{now:%Y-%m-%d}" or not (day.ends or len(day.compacted) > 1):
            continue
        found = read_day(day)
        troubles += found.troubles
        if day.newest is not None and found.compacted is None:
            continue
        if found.newer:
            plain = [table.cast(parquet.arrow_schema(HISTORY)) for table in found.tables]
            rows = pa.concat_tables(plain).sort_by([(name, "ascending") for name in _ORDER])
            number = _read_number(day.newest or "") + 1
            content = parquet.to_bytes(HISTORY, rows, {_COMPACTED: iso_utc(now)})
            (day.folder / f"day-{number:04d}.parquet").create(content)
        elif found.compacted is not None and _is_old(found.compacted, now):
            names = (*{*found.included}.intersection(day.ends), *day.compacted[:-1])
            discard(day.folder / name for name in names)
    return tuple(troubles)


def discard(places: Iterable[Place]) -> None:
    """Delete files that no reader needs, as far as this process is authorized to."""
    for place in places:
        with suppress(InvalidInput, OSError):
            place.delete()


def _is_old(rows: pa.Table, now: datetime) -> bool:
    try:
        at = datetime.fromisoformat(parquet.notes(rows)[_COMPACTED])
    except (KeyError, ValueError):
        return False
    return now - at > GRACE
