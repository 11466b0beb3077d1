"""The history on both engines, against a walk through the ends of runs in order."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from quota_ops.model.history.history import (
    DAYS,
    HISTORY,
    QUOTAS,
    DayHistory,
    HistoryRow,
    QuotaHistory,
)
from quota_ops.model.moment import iso_utc
from quota_ops.model.quotas.tables import Row, Table
from quota_ops.sql.embedded import EmbeddedEngine
from quota_ops.store.history.summaries import TABLES
from quota_ops.store.places import parquet
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from tests.engines.history_oracle import walk
from tests.engines.runs import SPARK_IN_MATRIX

if TYPE_CHECKING:
    from tests.engines.runs import AnyEngine

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)
limits = st.sampled_from([None, 1.0, 2.0, 3.0])
names = st.sampled_from([None, "anna", "ANONYMOUS", "\U0001f600"])
quotas = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(
            ["drifted", "conflict", "changed_since", "gone", "overriding", "pending"]
        ),
        "state": st.sampled_from(["drifted", "changed", "found", "forgotten", "held", None]),
        "outcome": st.sampled_from([None, "accepted", "refused", "unknown"]),
        "desired": limits,
        "actual": limits,
        "requested": limits,
        "owner": names,
    }
)
keys = st.tuples(st.sampled_from(["user=a", 'user="b b"', "ip=<default>"]), st.sampled_from("kl"))
ends = st.fixed_dictionaries(
    {
        "later": st.integers(1, 40_000),
        "mode": st.sampled_from(["look", "look", "apply", "rollback", "alter", "adopt"]),
        "declared": st.sampled_from([None, 3, 5]),
        "in_sync": st.integers(0, 5),
        "changed": st.sampled_from([None, 0, 2]),
        "stopped": st.sampled_from([None, None, "refused", "failed", "interrupted"]),
        "stopped_at": st.sampled_from(["plan", "apply"]),
        "blocked_by": st.sampled_from([None, "cut"]),
        "author": names,
        "run_reason": names,
        "resumes": st.booleans(),
        "revision": st.sampled_from([1, 1, 2]),
        "rows": st.dictionaries(keys, quotas, max_size=3),
    }
)
lives = st.lists(ends, min_size=1, max_size=12)


def write_life(cluster: str, life: Sequence[dict[str, Any]]) -> list[HistoryRow]:
    """Return the rows of the ends of runs, one after the other; some runs have several ends."""
    rows, at, run = [], FIRST, ""
    for number, one in enumerate(life, start=1):
        at += timedelta(seconds=one["later"])
        run = run if one["resumes"] and run else f"run {number}"
        end = NOTHING | {name: one[name] for name in NOTHING.keys() & one.keys()}
        end |= {"cluster": cluster, "run": run, "sequence": number, "commit": f"c{number}"}
        end |= {"started": iso_utc(at), "ended": iso_utc(at), "status": "Pending"}
        if end["stopped"] is None:
            end["stopped_at"] = None
        for revision in range(1, one["revision"] + 1):  # an earlier revision has no rows yet
            revised = end | {"revision": revision}
            rows.append(HistoryRow(**revised))
            compared = end["declared"] is not None or end["mode"] not in {"look", "apply"}
            if compared and revision == one["revision"]:
                row_of = {**revised, "declared": None, "changed": None}
                rows += [
                    HistoryRow(**row_of | {"entity": key[0], "key": key[1]} | row)
                    for key, row in one["rows"].items()
                ]
    return rows


def fold(
    engines: "Sequence[AnyEngine]", folder: Path, parts: Sequence[Sequence[HistoryRow]]
) -> tuple[list[QuotaHistory], list[DayHistory]]:
    """Return QUOTAS and DAYS of rows, folded part after part by one engine after the other."""
    before: dict[Any, list[Place]] = {table: [] for table in TABLES}
    for number, (engine, rows) in enumerate(zip(engines, parts, strict=True)):
        place = open_place(folder / f"day-{number}.parquet")
        place.replace(parquet.to_bytes(HISTORY, parquet.from_rows(HISTORY, rows)))
        written = engine.fold_days([place], before, open_place(folder / f"part-{number}"))
        before = {table: list(written[table.name]) for table in TABLES}
    return (
        sorted((row for one in before[QUOTAS] for row in _read(QUOTAS, one)), key=_id),
        sorted((row for one in before[DAYS] for row in _read(DAYS, one)), key=_id),
    )


def _read(table: Table[Row], place: Place) -> Iterable[Row]:
    return parquet.read_rows(table, parquet.from_bytes(table, place.read(), str(place)))


def _id(row: QuotaHistory | DayHistory) -> tuple[Any, ...]:
    return row[:3]


def expected(histories: Sequence[Sequence[HistoryRow]]) -> tuple[list[Any], list[Any]]:
    """Return what the reference finds for several clusters."""
    walked = [walk(rows) for rows in histories]
    quotas = [row for one in walked for row in one[0]]
    days = [row for one in walked for row in one[1]]
    return sorted(quotas, key=_id), sorted(days, key=_id)


def comparable(found: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
    """Return the rows with numbers rounded, because engines interpolate in different orders."""
    days = [one._replace(repair_median=_round(one.repair_median)) for one in found[1]]
    return found[0], [day._replace(repair_p95=_round(day.repair_p95)) for day in days]


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(life=lives)
def test_any_history(life: Any, embedded: EmbeddedEngine, tmp_path: Path) -> None:
    """The embedded engine finds what the walk finds, at once and when it continues each day."""
    rows = write_life("demo", life)
    days = sorted({row.ended[:10] for row in rows})
    parts = [[row for row in rows if row.ended[:10] == day] for day in days]

    wanted = comparable(expected([rows]))

    assert comparable(fold([embedded], tmp_path, [rows])) == wanted
    assert comparable(fold([embedded] * len(parts), tmp_path, parts)) == wanted


@pytest.fixture(scope="module")
def fleet() -> list[list[HistoryRow]]:
    """Return hundreds of histories, each of a cluster of its own."""
    examples: list[list[HistoryRow]] = []

    @settings(max_examples=200, database=None, derandomize=True, phases=[Phase.generate])
    @given(lives)
    def collect(life: Any) -> None:
        examples.append(write_life(f"c{len(examples):03}", life))

    collect()
    return examples


@SPARK_IN_MATRIX
def test_hundreds_of_clusters(
    engine: "AnyEngine",
    embedded: EmbeddedEngine,
    fleet: list[list[HistoryRow]],
    tmp_path: Path,
) -> None:
    """Either engine finds what the walk finds, when it continues a summary of DuckDB."""
    rows = [row for one in fleet for row in one]
    middle = iso_utc(FIRST + timedelta(days=1))[:10]
    first = [row for row in rows if row.ended[:10] <= middle]
    parts = [first, [row for row in rows if row.ended[:10] > middle]]

    assert comparable(fold([embedded, engine], tmp_path, parts)) == comparable(expected(fleet))


def test_a_job_with_a_wrong_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run store that is not there is an error, not a history without anything new."""
    from spark_jobs.summarize_history import main  # noqa: PLC0415 - pyspark

    with pytest.raises(SystemExit) as ended:
        main(str(tmp_path / "typo"))

    assert (ended.value.code, capsys.readouterr().err.split("\n")[0]) == (
        2,
        f"the run store {tmp_path / 'typo'} is missing or empty",
    )
