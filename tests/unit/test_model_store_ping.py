"""The result of a ping of a run store."""

import pytest

from quota_ops.model.clusters.ping import Operation, StorePing

WORKS, FAILS = Operation("create", (0.01,)), Operation("delete", error="denied")


def test_an_operation_that_was_not_tried_is_unknown() -> None:
    """Only an operation with a time or an error shows what is authorized."""
    found = [operation.is_authorized for operation in (WORKS, FAILS, Operation("list"))]

    assert found == [True, False, None]


@pytest.mark.parametrize(
    ("winners", "operations", "safe", "code"),
    [
        ((), (WORKS,), None, 0),
        ((1, 1), (WORKS,), True, 0),
        ((1, 1), (WORKS, FAILS), True, 1),
        ((1, 2), (WORKS, FAILS), False, 2),
    ],
)
def test_a_store_is_safe_when_each_race_has_one_winner(
    winners: tuple[int, ...], operations: tuple[Operation, ...], *, safe: bool | None, code: int
) -> None:
    """A store with two winners is worse than one that lacks a permission."""
    ping = StorePing("s3://bucket", operations, 2, winners)

    assert (ping.is_safe, ping.exit_code) == (safe, code)
