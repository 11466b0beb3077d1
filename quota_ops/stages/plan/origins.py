"""The origins of unmanaged values: releases, adoptions, alters and earlier runs in the run store.

People see the origins; no decision depends on them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import UNKNOWN_KINDS, Difference
from quota_ops.model.quotas.quota import format_limit, same
from quota_ops.model.quotas.rows import Key, Targets
from quota_ops.model.quotas.tables import ACTUAL
from quota_ops.model.runs.run import UNKNOWN, LedgerEdit, Origin, OriginOfRows, Origins
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import ADOPTED, ALTER, DESCRIBED, ORIGINS, POLICY, RELEASED
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import runs_latest_first
from quota_ops.store.run.state import RunState

LOOKED_AT = 100
"""How many of the newest runs of the store are searched for the origin of a value."""
_CHANGED = ", and changed since"
_RELEASED, _ADOPTED = "released from the ledger by", "adopted into the ledger by"
_OWNERSHIP = {RELEASED: _RELEASED, ADOPTED: _ADOPTED}


def leave_origins(folder: RunFolder, differences: Sequence[Difference]) -> None:
    """Write origins.json if the cluster has values that are not in the ledger."""
    rows = [row for row in differences if _is_unknown(row)]
    if not rows:
        return
    with suppress(InvalidInput):  # a copy of a run is in no store: no origin is known
        groups: dict[Origin, list[Key]] = {}
        for key, origin in find_origins(folder, rows).items():
            groups.setdefault(origin, []).append(key)
        found = (OriginOfRows(origin, tuple(keys)) for origin, keys in groups.items())
        folder.write(ORIGINS, Origins(tuple(found)))


def _is_unknown(row: Difference) -> bool:
    return row.kind in UNKNOWN_KINDS and row.before is not None and row.memory is None


def read_origins(folder: RunFolder) -> dict[Key, Origin]:
    """Return what `leave_origins` wrote. Raises InvalidInput if it is damaged."""
    found = folder.read(ORIGINS).origins
    return {row: of_rows.origin for of_rows in found for row in of_rows.rows}


def find_origins(folder: RunFolder, rows: Sequence[Difference]) -> dict[Key, Origin]:
    """Return the origin of each row; `UNKNOWN` if no earlier run has it.

    The newest run that explains a value decides: a release does not explain a value that was
    absent afterwards. The origin of a value in a snapshot is unknown: the snapshot may be older
    than any of the runs. Raises InvalidInput if the folder is not in a run store.
    """
    if _is_of_snapshot(folder):
        return {row.id: UNKNOWN for row in rows}
    values = {row.id: row.before or 0.0 for row in rows}
    policy = replace(folder.policy(), cluster=folder.about().cluster)
    return search_origins(folder.store, policy, values, but=folder.place.name)


def search_origins(
    store: RunStore, policy: Policy, values: Mapping[Key, float], *, but: str = ""
) -> dict[Key, Origin]:
    """Return the origin of each value that a cluster has now, as the newest runs of a store show.

    `but` is the name of a run that is left out.
    """
    search = _Search({**values})
    for run in _list_newest(store, policy.cluster, but):
        if not search.left:
            break
        with suppress(InvalidInput):  # damaged: the next run
            search.look_at(run, policy.cluster_id)
    return {key: search.found.get(key, UNKNOWN) for key in values}


def _list_newest(store: RunStore, cluster: str, but: str) -> Iterator[RunFolder]:
    """Yield the runs of the cluster's name among the newest of the store, newest first."""
    runs = store.runs_of(cluster)
    for path in islice(runs_latest_first(store.sequence), LOOKED_AT):
        name, _, run = path.partition("/")
        if name == runs.name and run != but:
            yield RunFolder(runs / run)


class _Search(Struct):
    """The search for the origins of a cluster's values in its runs, from the newest on."""

    left: dict[Key, float]
    """The values whose origin is not decided yet."""
    found: dict[Key, Origin] = {}
    """The origins so far: an earlier run may have a better one for a key in `left`."""
    changed: dict[Key, str] = {}
    """The start of the last run that saw another value."""

    def look_at(self, run: RunFolder, cluster_id: str) -> None:
        """Use the record of a run, or what it wrote and then what it described before."""
        if name := next(filter(run.has, _OWNERSHIP), None):
            self._use_record(run, cluster_id, run.read(name), _OWNERSHIP[name])
        elif run.has(POLICY) and run.policy().cluster_id == cluster_id:
            self._use_writes(run)
            if run.has(ACTUAL.file) and not _is_of_snapshot(run):
                self._use_observation(run)

    def _use_record(self, run: RunFolder, cluster_id: str, record: LedgerEdit, words: str) -> None:
        """Use a release or an adoption."""
        values: dict[Key, list[float | None]] = {}
        for row in record.rows:
            if row.cluster == cluster_id:
                values.setdefault(row.id, []).append(row.value)
        words = f"{words} {record.by} in {_named(run)}: {record.reason}"
        for key in self.left.keys() & values.keys():
            is_value = any(same(value, self.left[key]) for value in values[key])
            self._use_words(key, words, is_value=is_value)

    def _use_words(self, key: Key, words: str, *, is_value: bool) -> None:
        """Use the origin of a value if it `is_value`, the current one, or of one replaced since."""
        if is_value and key not in self.changed:
            self._decide(key, Origin(words))
        else:
            self._decide(key, Origin(f"{words}{_CHANGED}", self.changed.get(key)))

    def _use_writes(self, run: RunFolder) -> None:
        """Read the origins from the writes of a run that the cluster accepted."""
        state = RunState(run)
        if not (keys := self.left.keys() & state.written):
            return
        who, written = _writes(state)
        started = run.about().started
        for key in keys & written.keys():
            after = self.changed.get(key, started)
            if (value := written[key]) is None:
                self._decide(key, Origin(f"cleared by {who}, and set since", after))
            elif key not in self.changed and same(value, self.left[key]):
                self._decide(key, Origin(f"set by {who}", started))
            else:
                limit = format_limit(key.key, value)
                self._decide(key, Origin(f"set to {limit} by {who}{_CHANGED}", after))

    def _use_observation(self, run: RunFolder) -> None:
        """Use the values that a run described, and the origins that it recorded for them."""
        known = read_origins(run) if run.has(ORIGINS) else {}
        name, started = _named(run), run.about().started
        seen = {} if self.left.keys() <= self.changed.keys() else run.read_values(ACTUAL)
        for key, value in list(self.left.items()):
            if key not in self.changed:
                self._compare(key, value, seen.get(key), name, started)
            if key in known and key in self.left:
                self._use_known(key, known[key])

    def _compare(self, key: Key, value: float, then: float | None, run: str, started: str) -> None:
        if then is None:
            self._decide(key, Origin(f"not there in {run}", started))
        elif same(then, value):
            self.found[key] = Origin(f"there in {run} already; who set it is unknown")
        else:
            self.changed[key] = started
            self.found[key] = Origin(f"{format_limit(key.key, then)} in {run}", started)

    def _use_known(self, key: Key, origin: Origin) -> None:
        """Use the origin that a run recorded for a key, which may have had another value then."""
        if key not in self.changed:
            self._decide(key, self.found[key] if origin == UNKNOWN else origin)
        elif origin.words.startswith((_RELEASED, _ADOPTED)):
            self._use_words(key, origin.words.removesuffix(_CHANGED), is_value=False)
        else:
            self._decide(key, self.found[key])

    def _decide(self, key: Key, origin: Origin) -> None:
        self.found[key] = origin
        del self.left[key]


def _is_of_snapshot(run: RunFolder) -> bool:
    """Return whether a run read a file instead of the cluster."""
    return (described := run.find(DESCRIBED)) is not None and described.snapshot is not None


def _writes(state: RunState) -> tuple[str, Targets]:
    """Return the author of a run's writes, and the values to write; None clears a key."""
    run, alter = state.folder, state.find(ALTER)
    who = f"{alter.by} with alter in {_named(run)}" if alter else _named(run)
    return who, {row.id: row.target for row in run.differences()}


def _named(run: RunFolder) -> str:
    return f"run {run.about().run}"
