"""The order of what happened to a quota."""

from typing import Any

from quota_ops.model.history.history import Drift, HistoryRow
from quota_ops.report.outline.events import list_events
from quota_ops.report.outline.layout import plain
from quota_ops.report.screens.history import entity_screen

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


def test_a_value_of_git_that_the_cluster_never_stored_is_none_that_changed() -> None:
    """Only drift alone replaced the value of Git; an alter that changed nothing is no change."""
    kinds = ("drifted", "conflict", "overriding", "changed_since")
    drifts = [drift(4, "run 4")._replace(kind=kind) for kind in kinds]
    drifts[-1] = drifts[-1]._replace(desired=None)
    screen = plain(entity_screen("user=a", AT, (), list_events(drifts, [write(2, "alter", 9, 9)])))

    shown = [" ".join(line.split()[4:]) for line in screen.splitlines()[2:]]
    assert shown == [
        "drifted (changed since), seen by 2 runs 20 B/s (Git: none) run 4",
        "overriding, seen by 2 runs 20 B/s (Git: 10 B/s) run 4",
        "drifted (conflict), seen by 2 runs 20 B/s (Git: 10 B/s) run 4",
        "drifted, seen by 2 runs 10 B/s -> 20 B/s run 4",
    ]
