"""The history on both engines, against a walk through the ends of runs in order."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import Phase, given, settings
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
from quota_ops.sql.embedded import fold_history
from quota_ops.store.places import parquet
from tests.engines.history_oracle import walk

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
        "stopped": st.sampled_from([None, None, "refused", "failed", "interrupted", "killed"]),
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


def fold(rows: Sequence[HistoryRow]) -> tuple[list[QuotaHistory], list[DayHistory]]:
    """Return QUOTAS and DAYS of rows."""
    found = fold_history(parquet.from_rows(HISTORY, rows), ("quotas", "days"))
    return (
        sorted(parquet.read_rows(QUOTAS, found["quotas"]), key=_id),
        sorted(parquet.read_rows(DAYS, found["days"]), key=_id),
    )


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


def test_a_run_that_is_resumed_counts_its_changes_once() -> None:
    """A day has the changes that the run had not made before; one that starts over had none."""
    ends = [
        (1, "2026-11-01T23:50:00Z", 3),
        (1, "2026-11-02T08:00:00Z", 4),
        (2, "2026-11-02T09:00:00Z", 1),
    ]
    run = NOTHING | {
        "cluster": "demo",
        "run": "run 1",
        "mode": "apply",
        "revision": 1,
        "status": "",
    }
    rows = [
        HistoryRow(
            **run
            | {"sequence": number, "started": at, "ended": at, "declared": 9, "changed": changed}
        )
        for number, at, changed in ends
    ]

    assert [(day.runs, day.changed) for day in fold(rows)[1]] == [(1, 3), (1, 2)]


@settings(max_examples=15)
@given(life=lives)
def test_any_history(life: Any) -> None:
    """DuckDB finds what the walk finds."""
    rows = write_life("demo", life)

    assert comparable(fold(rows)) == comparable(expected([rows]))


def test_a_hundred_clusters() -> None:
    """A hundred histories, each of a cluster of its own, are found in one query."""
    fleet: list[list[HistoryRow]] = []

    @settings(max_examples=100, database=None, derandomize=True, phases=[Phase.generate])
    @given(lives)
    def collect(life: Any) -> None:
        fleet.append(write_life(f"c{len(fleet):03}", life))

    collect()
    rows = [row for life in fleet for row in life]

    assert comparable(fold(rows)) == comparable(expected(fleet))
