"""The order of runs: each takes a number when it begins, larger than all before."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from quota_ops.store.places.numbered_files import LAST, create_next, file_name, numbers
from quota_ops.store.places.place import Place

_KIND = "json"
_GROUPS = "runs"
AT_ONCE = 20
"""How many small files are read in parallel: each request to an object store takes a while."""
_EACH = 1000
"""The most numbers in one folder, so that finding the last one stays fast with many runs."""


def take_number(folder: Place, content: bytes, above: int = 0) -> int:
    """Take the next number, larger than every number taken before and than `above`.

    No two runs take the same number. Raises InvalidInput if the folder cannot be written.
    """
    return create_next(
        lambda number: folder / file_name(number // _EACH, _GROUPS) / file_name(number, _KIND),
        lambda _number: content,
        first=max(last_number(folder), above) + 1,
    )


def last_number(folder: Place) -> int:
    """Return the largest number taken; 0 if there is none."""
    groups = [group for group in numbers(folder, _GROUPS) if group <= LAST // _EACH]
    if not groups:
        return 0
    taken = numbers(folder / file_name(groups[-1], _GROUPS), _KIND)
    return max(taken, default=groups[-1] * _EACH - 1)


def runs_latest_first(folder: Place) -> Iterator[str]:
    """Yield each run, as CLUSTER/RUN, once, the one with the largest number first.

    A number whose file is damaged is skipped. Few numbers are read beyond those that are used.
    """
    seen: set[str] = set()
    for group in reversed(numbers(folder, _GROUPS)):
        place = folder / file_name(group, _GROUPS)
        taken = [place / file_name(number, _KIND) for number in reversed(numbers(place, _KIND))]
        for start in range(0, len(taken), AT_ONCE):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                runs = list(pool.map(_read_run, taken[start : start + AT_ONCE]))
            yield from (run for run in dict.fromkeys(runs) if run is not None and run not in seen)
            seen.update(run for run in runs if run is not None)


def _read_run(place: Place) -> str | None:
    with suppress(OSError, RecursionError, ValueError, KeyError, TypeError):
        return str(json.loads(place.read())["run"])
    return None
