"""Where unmanaged values came from: releases, alters and earlier runs in the run store.

This is shown to people; nothing is decided from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from quota_ops.model.alteration import altered_keys
from quota_ops.model.difference import Difference, Kind
from quota_ops.model.errors import InvalidInput
from quota_ops.model.outcome import Status
from quota_ops.model.quota import format_limit, same
from quota_ops.model.report import UNKNOWN, Origin
from quota_ops.model.rows import Key
from quota_ops.model.tables import ACTUAL
from quota_ops.store.parquet import to_values
from quota_ops.store.run_folder import ALTER, APPLIED, POLICY, RELEASED, RunFolder
from quota_ops.store.run_json import typed
from quota_ops.store.run_numbers import newest_runs
from quota_ops.store.run_store import store_of

ORIGINS = "origins.json"
"""The artefact with the origins of values that are not in the ledger."""
LOOKED_AT = 100
"""How many of the newest runs of the store are searched for the origin of a value."""
_FOREIGN = frozenset({Kind.TAKEOVER, Kind.UNMANAGED})


def leave_origins(folder: RunFolder, differences: Sequence[Difference]) -> None:
    """Write origins.json if the cluster has values that are not in the ledger."""
    rows = [row for row in differences if _is_unknown(row)]
    if not rows:
        return
    with suppress(InvalidInput):  # a copy of a run is in no store: nothing is known
        groups: dict[Origin, list[Key]] = {}
        for key, origin in find_origins(folder, rows).items():
            groups.setdefault(origin, []).append(key)
        folder.write_json(
            ORIGINS,
            {"origins": [one._asdict() | {"rows": keys} for one, keys in groups.items()]},
        )


def _is_unknown(row: Difference) -> bool:
    return row.kind in _FOREIGN and row.before is not None and row.memory is None


def read_origins(folder: RunFolder) -> dict[Key, Origin]:
    """Return what `leave_origins` wrote; InvalidInput if it is damaged."""
    return folder.read_as(ORIGINS, _read)


def _read(values: Mapping[str, Any]) -> dict[Key, Origin]:
    return {
        Key(typed(entity, str), typed(key, str)): Origin(
            typed(one["words"], str), typed(one["after"], str | None)
        )
        for one in values["origins"]
        for entity, key in one["rows"]
    }


def find_origins(folder: RunFolder, rows: Sequence[Difference]) -> dict[Key, Origin]:
    """Return the origin of each row; `UNKNOWN` if no earlier run has it.

    Raises InvalidInput if the folder is not in a run store.
    """
    cluster = folder.policy().cluster_id
    earlier = [one for one in _earlier(folder) if _is_of(one, cluster)]
    found: dict[Key, Origin] = {}
    wanted = {row.id: row.before for row in rows}
    for run in earlier:
        for key, origin in _records(run, wanted):
            found.setdefault(key, origin)
    last = next((one for one in earlier if one.has(ACTUAL.file)), None)
    seen = _seen(last) if last else {}
    for key, value in wanted.items():
        if key not in found:
            found[key] = _origin(last, key, value, seen.get(key)) if last else UNKNOWN
    return found


def _earlier(folder: RunFolder) -> list[RunFolder]:
    """Return the other runs of the cluster's name among the newest of the store, newest first."""
    cluster, run = folder.place.parent, folder.place.name
    runs = newest_runs(store_of(folder.place).sequence, LOOKED_AT)
    names = (name for of, _, name in (one.partition("/") for one in runs) if of == cluster.name)
    return [RunFolder(cluster / name) for name in names if name != run]


def _is_of(run: RunFolder, cluster_id: str) -> bool:
    """Return whether a run that may have a value is of this cluster id."""
    if not (run.has(ACTUAL.file) or run.has(RELEASED) or run.has(ALTER)):
        return False
    with suppress(InvalidInput):
        return run.has(POLICY) and run.policy().cluster_id == cluster_id
    return False


def _records(run: RunFolder, wanted: Mapping[Key, float | None]) -> Iterator[tuple[Key, Origin]]:
    """Yield the rows that a release or an alter recorded."""
    with suppress(InvalidInput, KeyError, TypeError, ValueError):  # damaged
        if run.has(RELEASED):
            released = run.read_json(RELEASED)
            by, reason = released["by"], released["reason"]
            why = f"released from the ledger by {by} in {_named(run)}: {reason}"
            for row in released["rows"]:
                key, value = Key(row["entity"], row["key"]), row["value"]
                if key in wanted:
                    moved = value is None or not same(float(value), wanted[key])
                    yield key, Origin(f"{why}{', and changed since' if moved else ''}")
        elif run.has(ALTER) and run.has(APPLIED):
            altered = run.read_json(ALTER)
            done = {one.entity for one in run.outcomes(APPLIED) if one.status is Status.ACCEPTED}
            changed = altered_keys(altered)
            for row in altered["changes"]:
                key, value = Key(row["entity"], row["key"]), row["after"]
                written = row["entity"] in done and value is not None and key in changed
                if written and key in wanted and same(float(value), wanted[key]):
                    words = f"set by {altered['by']} with alter in {_named(run)}"
                    yield key, Origin(words, run.about()["started"])


def _seen(run: RunFolder) -> dict[Key, float]:
    """Return the values of the cluster when a run described it; empty if that is damaged."""
    with suppress(InvalidInput):
        table = run.read_table(ACTUAL)
        entities, keys, values = (to_values(table[name]) for name in ("entity", "key", "value"))
        return dict(zip(map(Key, entities, keys), values, strict=True))
    return {}


def _origin(run: RunFolder, key: Key, value: float | None, then: float | None) -> Origin:
    started = run.about()["started"]
    if then is None:
        return Origin(f"not there in {_named(run)}", started)
    if not same(then, value):
        return Origin(f"{format_limit(key[1], then)} in {_named(run)}", started)
    return Origin(f"there in {_named(run)} already; who set it is unknown")


def _named(run: RunFolder) -> str:
    return f"run {run.about()['run']}"
