"""Shares of a budget, for any weights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.desired.expand.expansion import NoShareError, split_budget

WEIGHTS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.integers(1, 1000), min_size=1
)


@given(st.integers(1, 2**53), WEIGHTS, st.integers(0, 1000), st.randoms())
def test_a_budget_is_divided_exactly(
    budget: int, weights: dict[str, int], minimum: int, random: object
) -> None:
    """Shares add up to the budget in any order of the members, and follow their weights."""
    order = sorted(weights, key=lambda _: random.random())  # type: ignore[attr-defined]
    try:
        shares = split_budget(budget, weights, minimum)
    except NoShareError:
        assert budget < max(minimum, 1) * len(weights) or minimum == 0
        return

    assert sum(shares.values()) == budget
    assert shares == split_budget(budget, {name: weights[name] for name in order}, minimum)
    assert min(shares.values()) >= max(minimum, 1)
    more = {name: share for name, share in shares.items() if share > minimum}
    total = sum(weights[name] for name in more)
    rest = sum(more.values())
    for name, share in more.items():
        assert abs(share - rest * weights[name] / total) <= 1 + rest / 2**50
    for name, share in shares.items():
        for other, others in shares.items():
            assert weights[name] < weights[other] or share + 1 >= others


@pytest.mark.parametrize(
    ("budget", "minimum", "shares"),
    [
        (10, 0, {"a": 2, "b": 3, "c": 5}),
        (11, 0, {"a": 2, "b": 3, "c": 6}),
        (10, 3, {"a": 3, "b": 3, "c": 4}),
        (9, 3, {"a": 3, "b": 3, "c": 3}),
    ],
)
def test_what_is_left_goes_to_the_largest_remainders(
    budget: int, minimum: int, shares: dict[str, int]
) -> None:
    """With the weights 2, 3 and 5, examples that a person can compute."""
    assert split_budget(budget, {"c": 5, "b": 3, "a": 2}, minimum) == shares


def test_equal_remainders_go_to_the_first_names() -> None:
    """Ten units for three equal members: the first by name gets one more."""
    assert split_budget(10, {"b": 1, "a": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}


@pytest.mark.parametrize(
    ("budget", "minimum", "why"),
    [(2, 0, "too small to give every member a share"), (8, 3, "less than the minima")],
)
def test_a_share_of_zero_is_refused(budget: int, minimum: int, why: str) -> None:
    """Kafka has no quota of 0, so such a budget is an error."""
    with pytest.raises(NoShareError, match=why):
        split_budget(budget, {"a": 1, "b": 1, "c": 1}, minimum)
