"""The choice of an engine for a summary: DuckDB needs seconds where Spark only starts."""

from collections.abc import Callable, Mapping, Sequence
from io import SEEK_END
from typing import Any

from quota_ops.model.quotas.tables import Table
from quota_ops.sql.history import HistoryEngine
from quota_ops.store.places.place import Place

LARGE_BYTES = 16_000_000
"""Bytes of Parquet, a million rows or more, from which on Spark is worth its start."""


class EngineBySize:
    """Continues a small summary with DuckDB, and a large one with Spark, which starts only then."""

    def __init__(self, open_spark: Callable[[], HistoryEngine]) -> None:
        self._open_spark = open_spark

    def fold_days(
        self, days: Sequence[Place], before: Mapping[Table[Any], Sequence[Place]], to: Place
    ) -> Mapping[str, Sequence[Place]]:
        """Do what HistoryEngine promises, by the engine for the size of the files."""
        return self._choose(days, before).fold_days(days, before, to)

    def _choose(
        self, days: Sequence[Place], before: Mapping[Table[Any], Sequence[Place]]
    ) -> HistoryEngine:
        files = [*days, *(place for some in before.values() for place in some)]
        if sum(map(_measure, files)) > LARGE_BYTES:
            return self._open_spark()
        from quota_ops.sql.embedded import EmbeddedEngine  # noqa: PLC0415 - DuckDB

        return EmbeddedEngine()


def _measure(place: Place) -> int:
    with place.open() as file:
        return file.seek(0, SEEK_END)
