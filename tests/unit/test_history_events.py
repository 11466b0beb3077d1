"""The order of what happened to a quota."""

from typing import Any

from quota_ops.model.history.history import Drift, HistoryRow
from quota_ops.report.screens.history import list_events

AT = "2026-11-01T10:00:00Z"
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)
QUOTA = {"entity": "user=a", "key": "producer_byte_rate", "kind": "drifted", "outcome": "accepted"}


def write(number: int, mode: str, before: float | None, after: float) -> HistoryRow:
    """Return the row of a write of the quota by a run that ended at AT."""
    run = {"run": f"run {number}", "sequence": number, "ended": AT, "mode": mode}
    return HistoryRow(**NOTHING | QUOTA | run | {"actual": before, "requested": after})


def drift(number: int, repaired_by: str | None) -> Drift:
    """Return a drift from 10 to 20 that a run found last, and that ended in the same second."""
    looks = ("drifted", AT, AT, 2, 10.0, 20.0, f"run {number}")
    return Drift("demo", "user=a", "producer_byte_rate", None, *looks, AT, repaired_by, 0.0)


def test_events_of_one_second_are_in_the_order_in_which_they_happened() -> None:
    """A drift comes after the alter that caused it and before the write that repaired it."""
    first, altered, again = (
        write(1, "apply", None, 10.0)._replace(kind="pending"),
        write(2, "alter", 10.0, 20.0),
        write(4, "apply", 20.0, 10.0),
    )
    cases = [
        ([drift(4, "run 4")], [again, altered, first], "set, altered, drifted, repaired"),
        ([drift(4, "run 4")], [again], "drifted, repaired"),
        ([drift(3, None)], [altered], "altered, drifted, no longer drifted"),
    ]

    for drifts, rows, expected in cases:
        events = list_events(drifts, rows)
        assert (
            ", ".join(event.what.removesuffix(", seen by 2 runs") for event in events) == expected
        )
