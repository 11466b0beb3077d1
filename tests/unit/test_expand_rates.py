"""Shares of limits of the whole cluster, for any brokers."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.desired.expand.rates import divide_rates
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.plans.placement import Placement
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.quotas.rows import DesiredRow, Key

KEYS = ("producer_byte_rate", "request_percentage", "connection_creation_rate")
UNITS = {key: Decimal(1 if QUOTA_KEYS[key].whole else "0.01") for key in KEYS}


def rate(entity: str, key: str, whole: float, **more: object) -> DesiredRow:
    """Return the row of a limit of the whole cluster that is not divided yet."""
    row = DesiredRow("c", entity, key, whole, None, None, "team.yaml", 3, f"{whole:g} per cluster")
    return row._replace(whole=whole, **more)  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(1, 2**40)), max_size=5), st.data())
def test_together_brokers_reach_the_limit_and_never_exceed_it(
    limits: list[tuple[str, int]], data: st.DataObject
) -> None:
    """No unit of each broker could be added; the order of rows and brokers has no effect."""
    least = min([whole for _, whole in limits], default=9)
    brokers = data.draw(st.integers(1, min(least + 1, 500)))
    rows = [rate(f"user=u{n}", key, float(whole)) for n, (key, whole) in enumerate(limits)]
    try:
        divided = divide_rates(rows, Placement.of_count(brokers))
    except InvalidDesiredState:
        assert any(Decimal(whole) < brokers * UNITS[key] for key, whole in limits)
        return

    for row in divided:
        share, whole, unit = Decimal(str(row.value)), Decimal(row.whole or 0), UNITS[row.key]
        assert 0 < share * brokers <= whole < (share + unit) * brokers
        assert row.brokers == brokers
    assert divide_rates(divided, Placement.of_count(brokers + 1)) == divided
    backwards = Placement(tuple(range(brokers, 0, -1)), None)
    assert divide_rates(rows[::-1], backwards) == divided[::-1]


def test_why_a_limit_moves() -> None:
    """The derivation has the brokers of the stored value, if they were others."""
    row = rate("user=etl", "producer_byte_rate", 300.0)
    before = {Key("user=etl", "producer_byte_rate"): 3}
    texts = [
        divide_rates([row], Placement.of_count(brokers), before)[0].derivation
        for brokers in (3, 4, 1)
    ]

    assert texts == [
        "300 per cluster, over 3 brokers: 100 B/s if one serves it, 300 B/s if all do",
        "300 per cluster, over 4 brokers (3 -> 4 brokers): 75 B/s if one serves it, 300 B/s if all do",  # noqa: E501
        "300 per cluster, over 1 broker (3 -> 1 broker)",
    ]


def test_without_the_cluster_the_brokers_of_the_last_run_count() -> None:
    """What a run divided by before is used only if nobody knows what the brokers lead now."""
    row = rate("user=etl", "producer_byte_rate", 300.0, topics="orders")
    before = {row.id: 2}
    (divided,) = divide_rates([row], Placement((1, 2, 3), None), before)

    assert (divided.value, divided.brokers) == (150.0, 2)
    with pytest.raises(InvalidDesiredState):
        divide_rates([row], Placement((1, 2, 3), None))
    with pytest.raises(InvalidDesiredState):
        divide_rates([row], Placement((1, 2), {1: ["users"]}), before)
