"""Limits: every text that people write, and values shown without loss."""

from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.model.quotas.quota import (
    BYTE_UNITS,
    QUOTA_KEYS,
    add_limits,
    explain_unalterable,
    find_applied,
    format_limit,
    format_number,
    in_byte_unit,
    multiply_limit,
    parse_limit,
    same,
)
from tests.yaml_cases import load_yaml

CASES = tuple(
    pytest.param(case, id=f"{case['key']}: {case['text']}")
    for case in load_yaml((Path(__file__).parents[1] / "cases" / "limits.yaml").read_text())
)
stored = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


@pytest.mark.parametrize("case", CASES)
def test_a_limit_is_a_value_or_an_error(case: Any) -> None:
    """A text gives exactly one value, or an error that explains it."""
    found: Any
    try:
        found = parse_limit(QUOTA_KEYS[case["key"]], case["text"])
    except ValueError as error:
        found = str(error)

    assert found == case.get("value", case.get("error"))


@given(stored | st.integers(1, 2**63).map(float))
@example(2.0**53 - 1)
@example(9_007_199_254_740_736.0)
@example(1_235_000.0001)
def test_bytes_are_shown_exactly(value: float) -> None:
    """The number and unit shown are the exact value, or what Python writes for it."""
    number, unit = in_byte_unit(value)

    assert Fraction(number.replace(",", "")) * BYTE_UNITS[unit] in {
        Fraction(value),
        Fraction(repr(value)),
    }


@given(st.integers(1, 2**53).map(float))
def test_bytes_are_read_as_they_are_shown(value: float) -> None:
    """A value copied from a screen into YAML is the same value."""
    key = QUOTA_KEYS["producer_byte_rate"]

    assert parse_limit(key, format_limit(key.name, value).replace(",", "")) == value


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("producer_byte_rate", None, "none"),
        ("producer_byte_rate", 1.0, "1 B/s"),
        ("producer_byte_rate", 1_000.0, "1 kB/s"),
        ("producer_byte_rate", 1_024.0, "1 KiB/s"),
        ("producer_byte_rate", 1_536.0, "1.5 KiB/s"),
        ("producer_byte_rate", 15_728_640.0, "15 MiB/s"),
        ("producer_byte_rate", 20_000_000.0, "20 MB/s"),
        ("producer_byte_rate", 1_234_567.0, "1,234,567 B/s"),
        ("producer_byte_rate", 1_234_500_000.0, "1,234.5 MB/s"),
        ("producer_byte_rate", 1_235.0000001, "1235.0000001 B/s"),
        ("producer_byte_rate", 2.0**63, "unlimited"),
        ("producer_byte_rate", 2.0**80, "1,125,899,906,842,624 GiB/s"),
        ("producer_byte_rate", nan, "nan"),
        ("request_percentage", inf, "inf"),
        ("request_percentage", 12.5, "12.5 %"),
        ("controller_mutation_rate", 1e-7, "1e-07 mutations/s"),
        ("connection_creation_rate", 2_000.0, "2,000 connections/s"),
        ("storage_byte_rate", 2_048.0, "2,048"),
    ],
)
def test_limits_as_people_read_them(key: str, value: float | None, shown: str) -> None:
    """A value is exact, in the unit that makes it shortest; an unknown key has no unit."""
    assert format_limit(key, value) == shown


@given(st.floats())
def test_numbers_are_shown_exactly(value: float) -> None:
    """A number is read back unchanged, whatever a broker stored."""
    assert same(float(format_number(value).replace(",", "")), value)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1.0, 1.0, True),
        (1.0, 2.0, False),
        (nan, nan, True),
        (nan, 1.0, False),
        (1.0, nan, False),
        (None, None, True),
        (None, 1.0, False),
        (nan, None, False),
    ],
)
def test_stored_values_that_are_the_same(
    one: float | None, other: float | None, *, equal: bool
) -> None:
    """NaN equals itself, and a missing value is not a value."""
    assert same(one, other) is equal


@pytest.mark.parametrize(
    ("types", "key", "reason"),
    [
        (("user",), "producer_byte_rate", None),
        (("client-id",), "request_percentage", None),
        (("client-id", "user"), "controller_mutation_rate", None),
        (("ip",), "connection_creation_rate", None),
        (("group",), "producer_byte_rate", "unknown entity type group"),
        (("group", "user"), "producer_byte_rate", "unknown entity type group"),
        (("ip", "user"), "connection_creation_rate", "an ip together with another type"),
        (("user",), "storage_byte_rate", "unknown quota key"),
        (("ip",), "producer_byte_rate", "a key of another entity type"),
        (("user",), "connection_creation_rate", "a key of another entity type"),
    ],
)
def test_rows_that_no_broker_lets_anybody_alter(
    types: tuple[str, ...], key: str, reason: str | None
) -> None:
    """A stored row can be altered like any other, or there is one reason why not."""
    assert explain_unalterable(types, key) == reason


@pytest.mark.parametrize(
    ("key", "value", "applied"),
    [
        ("connection_creation_rate", nan, 0.0),
        ("connection_creation_rate", 0.5, 0.0),
        ("connection_creation_rate", 2.5, 2.5),
        ("producer_byte_rate", 0.5, 0.5),
        ("producer_byte_rate", 2.0**63, inf),
        ("future_rate", nan, inf),
    ],
)
def test_what_brokers_apply_for_a_stored_value(key: str, value: float, applied: float) -> None:
    """A part of a connection blocks an address; what is no limit of a client is infinite."""
    assert find_applied(key, value) == applied


def test_a_limit_is_multiplied_as_people_compute_it() -> None:
    """Three brokers with 33.3 % serve 99.9 %, although the doubles make 99.89999999999999."""
    assert multiply_limit(33.3, 3) == 99.9


@pytest.mark.parametrize(
    ("limits", "total"),
    [
        ([], 0),
        ([0.1, 0.1, 0.1], 0.3),
        ([1.1, 2.2], 3.3),
        ([1361195397906.432], 1361195397906.432),
        ([2.0**52, 4.0], 2.0**52 + 4),
        ([1e6, inf], inf),
    ],
)
def test_limits_are_added_as_people_add_them(limits: list[float], total: float) -> None:
    """No sum is above a ceiling with the same digits, however many these are."""
    assert add_limits(limits) == total
