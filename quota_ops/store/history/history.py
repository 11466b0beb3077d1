"""The files of the history: one for each end of a run, each past day, and each past month.

history/date=2026-11-22/CLUSTER@RUN@TIME-1.parquet  an end of a run
history/date=2026-11-22/day-0001.parquet            all ends of the day so far
history/month=2026-10/month-0001.parquet            all ends of the month so far, by cluster

Each is created once. The names of the ends that a file has follow from its rows, so that an end
that was recorded later is noticed; `compact` then creates the next file of the day or month.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate, groupby

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput
from quota_ops.model.history.history import HISTORY
from quota_ops.model.moment import iso_utc
from quota_ops.store.places import parquet
from quota_ops.store.places.numbered_files import MOST_ATTEMPTS, refused_create
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore, safe_name
from quota_ops.store.places.written_by import OtherForm

_FOLDER = re.compile(r"date=(\d{4}-\d\d-\d\d)|month=(\d{4}-\d\d)")
_COMPACT = re.compile(r"(?:day|month)-(\d{4,})\.parquet")
SEPARATOR = "@"
"""Between the parts of a file name; no safe name has it."""
_MONTH = len("2026-11")
_AT_ONCE = 16
GRACE = timedelta(hours=6)
"""How long files stay that a compacted one replaces, for commands that have listed them."""
MOST_ENDS = 1_000
"""Ends of runs, two seconds of work, after which `compact_daily` leaves the rest for a day."""
_COMPACTED = "compacted"
GROUP_ROWS = 20_000
"""How many rows a reader of one cluster reads at a time."""
_ORDER = ("cluster", "entity", "key", "ended", "run")
_END = ("cluster", "run", "ended", "revision")


def append(store: RunStore, rows: pa.Table) -> None:
    """Create the file of an end of a run, whose rows of HISTORY have the revision 1.

    Does nothing if it was recorded with the same rows.

    An end of the same second with other rows is the next revision, which replaces this one when
    the history is read. Raises InvalidInput like `Place.create`.
    """
    cluster, run, ended, _ = (rows[name][0].as_py() for name in _END)
    folder, at = day_folder(store, ended[:10]), rows.column_names.index("revision")
    for revision in range(1, MOST_ATTEMPTS):
        revisions = pa.repeat(pa.scalar(revision, pa.int32()), rows.num_rows)
        content = parquet.to_bytes(HISTORY, rows.set_column(at, "revision", revisions))
        place = folder / _name_end(cluster, run, ended, revision)
        if place.create(content) or _has(place, content):
            return
    raise refused_create(folder / ended)


def _has(place: Place, content: bytes) -> bool:
    try:
        return place.read() == content
    except OSError:  # it was compacted and deleted just now
        return False


def _name(cluster: str) -> str:
    """Return a cluster's part of a name: short enough that the whole name takes 255 bytes."""
    return safe_name(cluster, 50)


def day_folder(store: RunStore, date: str) -> Place:
    """Return the folder of a day, such as 2026-11-22."""
    return store.history / f"date={date}"


def _name_end(cluster: str, run: str, ended: str, revision: int) -> str:
    names = (_name(cluster), safe_name(run, 64), safe_name(ended.replace(":", "-")))
    return f"{SEPARATOR.join(names)}-{revision}.parquet"


class Day(Struct, frozen=True):
    """The files of a day of the history, or of a past month."""

    date: str
    """2026-11-22, or 2026-10."""
    folder: Place
    compacted: tuple[str, ...]
    """The names of its compacted files, the newest last."""
    ends: tuple[str, ...] = ()
    """The names of the files of ends, compacted or not; none in a month."""
    foreign: tuple[str, ...] = ()
    """The names of links, pipes and devices, which are never read."""
    size: int = 0
    """The bytes of its files, those of all clusters."""
    clusters: frozenset[str] | None = None
    """The clusters whose rows are read; None for all."""

    @property
    def newest(self) -> str | None:
        """The name of the newest compacted file."""
        return self.compacted[-1] if self.compacted else None

    @property
    def month(self) -> str:
        """The month, such as 2026-11."""
        return self.date[:_MONTH]

    def reaches(self, since: str) -> bool:
        """Return whether it has a day from `since` (2026-11-22) on."""
        return self.date >= since[: len(self.date)]

    def of_clusters(self, clusters: Iterable[str]) -> "Day":
        """Return the day with the ends of these clusters alone."""
        wanted = frozenset(clusters)
        named = {_name(cluster) for cluster in wanted}
        ends = tuple(name for name in self.ends if name.partition(SEPARATOR)[0] in named)
        return replace(self, ends=ends, clusters=wanted)


class DayRows(Struct, frozen=True):
    """The rows of a day: those of its compacted file, then those of the ends that it lacks.

    `troubles` names each file that cannot be read, and why; its rows are missing.
    """

    compacted: pa.Table | None
    newer: tuple[pa.Table, ...]
    included: frozenset[str]
    """The names of the ends that the compacted file has; empty if nothing else may have them."""
    troubles: tuple[str, ...]

    @property
    def tables(self) -> tuple[pa.Table, ...]:
        """All rows."""
        return (*(() if self.compacted is None else (self.compacted,)), *self.newer)


ReadDay = Callable[[Day], DayRows]
"""A function like `read_day`, which may keep what it has read."""


def list_days(store: RunStore, since: str = "", clusters: Iterable[str] | None = None) -> list[Day]:
    """Return the months and days of the history in order, those from a day on.

    With `clusters`, only their ends are read. Raises InvalidInput if they cannot be listed.
    """
    found: dict[str, list[str]] = {}
    sizes: Counter[str] = Counter()
    foreign: dict[str, list[str]] = defaultdict(list)
    for leaf in store.history.walk():
        folder, _, name = leaf.path.partition("/")
        if not leaf.is_folder and _FOLDER.fullmatch(folder):
            names = found.setdefault(folder, [])
            (names if leaf.is_own else foreign[folder]).append(name)
            sizes[folder] += leaf.size
    days = [
        Day(
            folder.partition("=")[2],
            store.history / folder,
            tuple(sorted((name for name in names if _COMPACT.fullmatch(name)), key=_read_number)),
            tuple(name for name in names if SEPARATOR in name and name.endswith(".parquet")),
            tuple(foreign[folder]),
            sizes[folder],
        )
        for folder, names in found.items()
    ]
    listed = sorted((day for day in days if day.reaches(since)), key=lambda day: day.date)
    return listed if clusters is None else [day.of_clusters(clusters) for day in listed]


def name_foreign(days: Iterable[Day]) -> tuple[str, ...]:
    """Return a sentence for each file of some days that is not read because of what it is."""
    return tuple(
        f"{day.folder / name if name else day.folder} is a link, a pipe or a device"
        for day in days
        for name in day.foreign
    )


def _read_number(name: str) -> int:
    found = _COMPACT.fullmatch(name)
    return int(found[1]) if found else 0


def read_day(day: Day) -> DayRows:
    """Return the rows of a day or a month."""
    troubles: list[str] = []
    read = partial(_read, report=troubles.append)
    compacted = None if day.newest is None else read(day.folder / day.newest, day.clusters)
    is_shared = compacted is not None and (day.ends or day.date == day.month)
    included = frozenset(_name_ends(compacted) if is_shared else ())
    newer = sorted({*day.ends}.difference(included))
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        found = list(readers.map(lambda name: read(day.folder / name), newer))
    tables = tuple(table for table in found if table is not None)
    return DayRows(compacted, tables, included, tuple(sorted(troubles)))


def read_rows(
    days: Iterable[Day], since: str = "", read: ReadDay = read_day
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the rows since a date, each end once, and why some files cannot be read."""
    tables, troubles = [parquet.from_rows(HISTORY, [])], list(name_foreign(days := [*days]))
    for _, of_month in groupby(days, key=lambda day: day.month):
        included: frozenset[str] = frozenset()
        for day in of_month:
            found = read(day)
            troubles += found.troubles
            tables += [_leave_out(table, included) for table in found.tables]
            included |= found.included if day.date == day.month else frozenset()
    rows = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    return _filter(rows, lambda ended: ended >= since, "ended") if since else rows, tuple(troubles)


def _leave_out(rows: pa.Table, included: Collection[str]) -> pa.Table:
    """Return the rows of ends that are not included elsewhere."""
    if not included:
        return rows
    return _filter(rows, lambda *end: _name_end(*end) not in included, *_END)


def _filter(rows: pa.Table, keep: Callable[..., bool], *names: str) -> pa.Table:
    kept = [keep(*row) for row in parquet.to_rows(rows, *names)]
    return rows if all(kept) else rows.filter(pa.array(kept, pa.bool_()))


def _read(
    place: Place, clusters: frozenset[str] | None = None, *, report: Callable[[str], None]
) -> pa.Table | None:
    try:
        if clusters is None:
            return parquet.from_bytes(HISTORY, place.read(), str(place))
        return parquet.read_part(HISTORY, place, "cluster", clusters)
    except OtherForm as error:
        report(f"{error.message} (another version of quota-ops wrote it)")
    except InvalidInput as error:
        report(error.message)
    except OSError as error:
        report(f"{place} cannot be read: {error.strerror}")
    return None


def _name_ends(rows: pa.Table) -> Iterator[str]:
    for *end, entity in parquet.to_rows(rows, *_END, "entity"):
        if entity is None:
            yield _name_end(*end)


def compact_daily(store: RunStore, now: datetime) -> tuple[str, ...]:
    """Compact past days, the oldest first, unless a run began that today; return as `compact`.

    Raises InvalidInput if the store cannot be written.
    """
    claim = store.history / f"compacted-{now:%Y-%m-%d}"
    if claim.exists():
        return ()
    past = [day for day in list_days(store) if day.date < f"{now:%Y-%m-%d}"]
    is_open = any(
        day.ends or (day.date != day.month and day.month < f"{now:%Y-%m}") for day in past
    )
    if not is_open or not claim.create(b""):
        return ()
    begun = (name for name in store.history.list() if name.startswith("compacted-"))
    discard(store.history / name for name in begun if name < claim.name)
    earlier = accumulate((0 if day.compacted else len(day.ends) for day in past), initial=0)
    return compact([day for day, ends in zip(past, earlier, strict=False) if ends < MOST_ENDS], now)


def compact(days: Iterable[Day], now: datetime) -> tuple[str, ...]:
    """Create a file of each past day and month that lacks an end; return what cannot be read.

    Files that it replaces are deleted later, when no command reads them any more. A day of which
    the compacted file cannot be read stays as it is, and so does its month. Raises InvalidInput as
    `Place.create`.
    """
    past = [day for day in days if day.date < f"{now:%Y-%m-%d}"]
    troubles = [
        trouble
        for day in past
        if day.date != day.month and (day.ends or len(day.compacted) > 1)
        for trouble in _compact_day(day, now)
    ]
    for month, of_month in groupby(past, key=lambda day: day.month):
        if month < f"{now:%Y-%m}":
            troubles += _compact_month([day for day in of_month if day.newest or day.ends], now)
    return tuple(troubles)


def _compact_day(day: Day, now: datetime) -> tuple[str, ...]:
    found = read_day(day)
    if day.newest is not None and found.compacted is None:
        return found.troubles
    if found.newer:
        _write(
            day.folder / f"day-{_read_number(day.newest or '') + 1:04d}.parquet", found.tables, now
        )
    elif found.compacted is not None and _is_old(found.compacted, now):
        names = (*found.included.intersection(day.ends), *day.compacted[:-1])
        discard(day.folder / name for name in names)
    return found.troubles


def _compact_month(days: Sequence[Day], now: datetime) -> tuple[str, ...]:
    """Create or continue the file of a month, once each of its days is one file."""
    dated = [day for day in days if day.date != day.month]
    if not dated or any(day.ends or len(day.compacted) > 1 for day in dated):
        return ()
    found = [(day, read_day(day)) for day in days]
    month = dated[0].folder.parent / f"month={dated[0].month}"
    newest, included, tables = "", frozenset[str](), list[pa.Table]()
    for day, rows in found:
        if rows.compacted is None:
            return rows.troubles
        tables.append(_leave_out(rows.compacted, included))
        if day.date == day.month:
            newest, included = str(day.newest), rows.included
    if not newest or any(table.num_rows for table in tables[1:]):
        _write(month / f"month-{_read_number(newest) + 1:04d}.parquet", tables, now)
    elif _is_old(tables[0], now):
        discard(day.folder / name for day in dated for name in day.compacted)
        discard(month / name for name in days[0].compacted[:-1])
    return ()


def _write(place: Place, tables: Iterable[pa.Table], now: datetime) -> None:
    plain = [table.cast(parquet.arrow_schema(HISTORY)) for table in tables]
    rows = pa.concat_tables(plain).sort_by([(name, "ascending") for name in _ORDER])
    notes = {_COMPACTED: iso_utc(now)}
    place.create(parquet.to_bytes(HISTORY, rows, notes, group_rows=GROUP_ROWS))


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
