"""The words about an overriding quota, and the declared one of which it takes clients."""

import pytest

from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.model.quotas.rows import OverrideRow
from quota_ops.report.outline.cells import overriding
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
            "user bob, any other client: 10 B/s for each client id of a user in force, and 10 B/s "
            "for all client ids of a user together declared by user=bob (team.yaml:4)"
        ),
    ),
    (
        "user=<default>",
        "client-id=indexer",
        (4.0, 5.0),
        (
            "any other user, client indexer: 4 B/s in force, lower than 5 B/s declared by "
            "client-id=indexer (team.yaml:4)"
        ),
    ),
    (
        "client-id=<default>",
        "client-id=<default>,user=<default>",
        (1.0, 2.0),
        (
            "any other user, any other client: 1 B/s in force, lower than 2 B/s "
            "declared by client-id=<default>,user=<default> (team.yaml:4)"
        ),
    ),
]


@pytest.mark.parametrize(("entity", "declared", "values", "words"), CASES)
def test_whose_limit_an_overriding_quota_takes(
    entity: str, declared: str, values: tuple[float, float], words: str
) -> None:
    """Only clients of both quotas are meant, and equal values differ by who shares them."""
    row = Difference.of_values(
        ("id", entity, KEY), Kind.OVERRIDING, Action.REPORT, before=values[0], after=None
    )
    taken = OverrideRow(
        "id",
        entity,
        KEY,
        values[0],
        None,
        declared,
        values[1],
        "team",
        "team.yaml",
        4,
        accepted=False,
    )

    assert overriding(ReportRow(row, RowStatus.OVERRIDING, overrides=(taken,))) == words
