"""The words about an overriding quota, and the declared one of which it takes clients."""

import pytest
from msgspec.structs import replace

from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import OverrideRow, Side
from quota_ops.report.outline.cells import overriding, overriding_clients
from quota_ops.report.outline.row_status import ReportRow, RowStatus

KEY = "producer_byte_rate"
CASES = [
    (
        "user=bob",
        "client-id=console-consumer,user=<default>",
        (20.0, 1.0),
        (
            "user bob, client console-consumer: 20 B/s in force, higher than 1 B/s declared by "
            "client-id=console-consumer,user=<default> (team.yaml:4)"
        ),
    ),
    (
        "client-id=<default>,user=bob",
        "user=bob",
        (10.0, 10.0),
        (
            "user bob, every client id without a limit of its own: 10 B/s for each client id of a "
            "user in force, and 10 B/s "
            "for all client ids of a user together declared by user=bob (team.yaml:4)"
        ),
    ),
    (
        "client-id=app,user=bob",
        "user=bob",
        (10.0, 10.0),
        (
            "user bob, client app: 10 B/s for this client id alone in force, and 10 B/s for all "
            "client ids of a user together declared by user=bob (team.yaml:4)"
        ),
    ),
    (
        "user=<default>",
        "client-id=indexer",
        (4.0, 5.0),
        (
            "every user without a limit of their own, client indexer: 4 B/s in force, lower "
            "than 5 B/s declared by client-id=indexer (team.yaml:4)"
        ),
    ),
    (
        "client-id=<default>",
        "client-id=<default>,user=<default>",
        (1.0, 2.0),
        (
            "every user without a limit of their own, every client id without a limit of its own: "
            "1 B/s in force, lower than 2 B/s "
            "declared by client-id=<default>,user=<default> (team.yaml:4)"
        ),
    ),
]


@pytest.mark.parametrize(("entity", "declared", "values", "words"), CASES)
def test_whose_limit_an_overriding_quota_takes(
    entity: str, declared: str, values: tuple[float, float], words: str
) -> None:
    """Only clients of both quotas are meant, and equal values differ by who shares them."""
    assert overriding(row_of(entity, values[0], {declared: values[1]})) == words


def test_an_overriding_quota_of_several_takes_all_of_its_clients() -> None:
    """No class of clients stands for all of them."""
    pair, other = "client-id=web,user=<default>", "user=<default>"
    row = row_of("user=carol", 7.0, {other: 10.0, pair: 50.0, "client-id=app,user=<default>": 1.0})

    assert overriding(row) == (
        "user carol: 7 B/s in force, in place of 10 B/s declared by user=<default> (team.yaml:4) "
        "and 50 B/s declared by client-id=web,user=<default> (team.yaml:4), for example"
    )
    assert overriding_clients(row) == "user carol"


def test_the_clients_that_another_quota_of_the_user_takes_are_not_counted_twice() -> None:
    """Every client id has the limit of the user's other quota, and only other clients this one."""
    row = row_of("user=zoe", 900.0, {"user=<default>": 5000.0})
    both = replace(row, undeclared=frozenset({"user=zoe", "client-id=<default>,user=zoe"}))

    assert overriding_clients(row) == "user zoe"
    assert overriding(both) == (
        "user zoe, clients without a client id: 900 B/s in force, lower than 5 kB/s declared by "
        "user=<default> (team.yaml:4)"
    )


def row_of(entity: str, value: float, declared: dict[str, float]) -> ReportRow:
    """Return an overriding row of an entity, and the declared rows of which it takes clients."""
    row = Difference("id", entity, KEY, Kind.OVERRIDING, Action.REPORT, before=value, after=None)
    taken = tuple(
        OverrideRow("id", entity, KEY, value, None, *of, "team", "team.yaml", 4, Side.UNMANAGED)
        for of in declared.items()
    )
    return ReportRow(row, RowStatus.OVERRIDING, overrides=taken)
