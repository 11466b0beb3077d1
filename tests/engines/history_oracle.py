"""The reference of the history: the ends of a cluster's runs, walked in order."""

from collections.abc import Iterable
from datetime import datetime
from statistics import quantiles
from typing import Any

from quota_ops.model.history.history import DayHistory, HistoryRow, QuotaHistory
from quota_ops.model.quotas.difference import HISTORY_KINDS

REPAIRED = {"changed", "found", "forgotten"}
FAILED = {"failed", "interrupted", "killed", "not ended"}
STATES = (
    *("declared", "in_sync", "drifted", "returned", "pending", "held", "unmanaged", "unsettled"),
    *("overriding", "not_judged"),
)


def walk(rows: Iterable[HistoryRow]) -> tuple[list[QuotaHistory], list[DayHistory]]:
    """Return what happened to each quota of a cluster, and on each day."""
    last: dict[tuple[str, str], int] = {}
    for row in rows:
        end = (row.run, row.ended)
        last[end] = max(row.revision, last.get(end, 0))
    ends: dict[tuple[str, int, str], list[HistoryRow]] = {}
    for row in rows:
        if row.revision == last[row.run, row.ended]:
            ends.setdefault((row.ended, row.sequence or 0, row.run), []).append(row)
    quotas: dict[tuple[str, str], dict[str, Any]] = {}
    restored: dict[tuple[str | None, str | None], HistoryRow] = {}
    seconds: dict[str, list[float]] = {}
    for _, found in sorted(ends.items()):
        _take(found, quotas, restored, seconds)
    names = QuotaHistory._fields
    return (
        [QuotaHistory(*(one[name] for name in names)) for _, one in sorted(quotas.items())],
        _list_days([found for _, found in sorted(ends.items())], seconds),
    )


def _take(
    rows: list[HistoryRow],
    quotas: dict[tuple[str, str], dict[str, Any]],
    restored: dict[tuple[str | None, str | None], HistoryRow],
    seconds: dict[str, list[float]],
) -> None:
    (run,) = (row for row in rows if row.entity is None)
    is_look = _is_look(run)

    drifted = {(row.entity, row.key): row for row in rows if row.kind in HISTORY_KINDS}
    for key, one in quotas.items() if is_look else ():
        alter = restored.pop(key, None)
        if one["drifted_since"] and key not in drifted:
            _end_drift(one, seconds, run.ended, None)
        elif one["drifted_since"] and alter:  # it is seen again: another drift
            _end_drift(one, seconds, alter.ended, alter.run)
    for row in rows:
        written = row.outcome == "accepted" and run.mode in {"apply", "rollback", "alter"}
        seen = is_look and row.kind in HISTORY_KINDS
        if row.entity is None or not (written or seen):
            continue
        one = quotas.setdefault((row.entity, str(row.key)), _new(row))
        one["owner"] = row.owner or one["owner"]
        if seen:
            first = one["first_seen"] or row.ended
            one["drifts"] += one["drifted_since"] is None
            one.update(first_seen=first, last_seen=row.ended, times_seen=one["times_seen"] + 1)
            one["drifted_since"] = one["drifted_since"] or row.ended
            one.update(kind=row.kind, desired=row.desired, actual=row.actual)
            if row.state in REPAIRED:
                by = row.run if row.outcome == "accepted" else None
                _end_drift(one, seconds, run.ended, by)
        if written and run.mode == "alter":
            _take_alter(row, one, restored)
        elif written:
            one.update(set_at=row.ended, set_run=row.run, set_commit=row.commit)
            one.update(set_by=row.author, set_value=row.requested)


def _end_drift(
    one: dict[str, Any], seconds: dict[str, list[float]], at: str, by: str | None
) -> None:
    length = datetime.fromisoformat(at) - datetime.fromisoformat(one["drifted_since"])
    seconds.setdefault(at[:10], []).append(length.total_seconds())
    one.update(drifted_since=None, repaired=at, repaired_by=by)


def _take_alter(
    row: HistoryRow, one: dict[str, Any], restored: dict[tuple[str | None, str | None], HistoryRow]
) -> None:
    if row.requested == row.actual:  # brokers ignore a value that they store
        return
    one |= _altered(row)
    if one["drifted_since"] and row.requested == one["desired"]:
        restored.setdefault((row.entity, row.key), row)


def _altered(row: HistoryRow) -> dict[str, Any]:
    names = {"at": "ended", "run": "run", "by": "author", "reason": "run_reason"}
    names["value"] = "requested"
    return {f"altered_{name}": getattr(row, field) for name, field in names.items()}


def _is_look(run: HistoryRow) -> bool:
    return run.mode in {"look", "apply"} and run.declared is not None


def _new(row: HistoryRow) -> dict[str, Any]:
    ids = {"cluster": row.cluster, "entity": row.entity, "key": row.key}
    return dict.fromkeys(QuotaHistory._fields) | {**ids, "drifts": 0, "times_seen": 0}


def _list_days(ends: list[list[HistoryRow]], seconds: dict[str, list[float]]) -> list[DayHistory]:
    runs = [row for found in ends for row in found if row.entity is None]
    days = []
    for date in sorted({row.ended[:10] for row in runs}):
        of_day = {row.run: row for row in runs if row.ended[:10] == date}.values()
        looks = [row for row in runs if row.ended[:10] == date and _is_look(row)]
        last = max(looks, key=lambda row: (row.ended, row.sequence or 0, row.run), default=None)
        repairs = seconds.get(date, [])
        lengths = [
            repair for repair in repairs if repair
        ]  # not those found and repaired by one run
        refused = sum(row.stopped == "refused" and row.stopped_at != "plan" for row in of_day)
        days.append(
            DayHistory(
                runs[0].cluster,
                date,
                len(of_day),
                len(looks),
                sum(row.stopped in FAILED for row in of_day),
                refused,
                sum(row.blocked_by is not None for row in of_day),
                sum(row.changed or 0 for row in runs if row.ended[:10] == date),
                len(repairs),
                _find_share(lengths, 50),
                _find_share(lengths, 95),
                *(last and getattr(last, name) for name in STATES),
            )
        )
    return days


def _find_share(lengths: list[float], share: int) -> float | None:
    if len(lengths) < 2:
        return lengths[0] if lengths else None
    return quantiles(lengths, n=100, method="inclusive")[share - 1]
