"""Counts, plurals and percentages: correct for every number."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.model.plans.plan import change_share, is_cut
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, parse_limit
from quota_ops.model.text import command, counted, floor_percent, format_percent, name_first, plural
from tests.unit.report_sample import difference

LIMITS = st.integers(1, 2**53).map(float)


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "quota", "0 quotas"),
        (1, "quota", "1 quota"),
        (1204, "quota", "1,204 quotas"),
        (1, "entity", "1 entity"),
        (2, "entity", "2 entities"),
        (2, "key", "2 keys"),
        (2, "batch", "2 batches"),
        (2, "more entity", "2 more entities"),
    ],
)
def test_a_count_agrees_with_its_noun(number: int, noun: str, words: str) -> None:
    """One quota, many quotas; one entity, many entities."""
    assert counted(number, noun) == words


def test_a_verb_agrees_with_its_count() -> None:
    """One is, many are."""
    assert [plural(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (10.0, 15.0, "+50 %"),
        (20.0, 12.5, "-37.5 %"),
        (20 * 2.0**20, 6000.0, "-99.97 %"),
        (1_000_000.0, 499_999.0, "-50.0001 %"),
        (1.1, 0.55, "-50 %"),
        (100.0, 93.0, "-7 %"),
        (2.0**53, 1.0, "-99.99999999999999 %"),
        (1.0, 1_000_001.0, "+100,000,000 %"),
        (20 * 2.0**20, 20 * 2.0**20 - 1, "-0.000005 %"),
    ],
)
def test_a_change_in_percent(before: float, after: float, words: str) -> None:
    """A change is shown with as many digits as it needs, and no more."""
    assert format_percent(_share(before, after)) == words


@given(LIMITS, LIMITS, st.integers(1, 99))
@example(1_000_000.0, 499_999.0, 50)
@example(20 * 2.0**20, 6000.0, 99)
def test_a_percent_says_of_a_cut_what_the_guard_says(
    before: float, after: float, threshold: int
) -> None:
    """A cut is shown as more than a guard's limit exactly if the guard counts it so."""
    row = difference({"user": "a"}, "producer_byte_rate", _SET, before, after)
    shown = float(format_percent(change_share(row)).removesuffix(" %").replace(",", ""))

    assert is_cut(row, beyond=threshold) == (-shown > threshold)
    assert (shown > -100, shown == 0) == (True, before == after)


@pytest.mark.parametrize("key", QUOTA_KEYS.values(), ids=lambda key: key.name)
@pytest.mark.parametrize("value", [1.0, 2.0, 1000.0])
def test_a_limit_is_read_as_it_is_shown(key: object, value: float) -> None:
    """One connection/s, two connections/s: a limit can be copied from a screen into YAML."""
    known = QUOTA_KEYS[getattr(key, "name", "")]
    words = format_limit(known.name, value)

    assert parse_limit(known, words.replace(",", "")) == value
    assert ("1 connections" in words, "1 mutations" in words) == (False, False)


def test_a_share_in_whole_percent() -> None:
    """29 of 100 are 29 %, although their quotient is a little less; 100 % is all of it."""
    parts = [floor_percent(part / 200) for part in range(201)]

    assert parts == [f"{part // 2} %" for part in range(201)]
    assert floor_percent(1 - 1 / 86_400 / 30) == "99 %"


_SET = (Kind.PENDING, Action.SET)


def _share(before: float, after: float) -> float:
    return change_share(difference({"user": "a"}, "producer_byte_rate", _SET, before, after))


def test_the_first_names_and_how_many_more() -> None:
    """A sentence names the first of many, and counts the others."""
    named = [name_first("abc"[:size], 2, str.upper) for size in range(4)]

    assert named == ["", "A", "A, B", "A, B and 1 more"]
    assert name_first(["x"] * 1205, between="; ") == "x and 1,204 more"


def test_a_command_to_copy() -> None:
    """A path with a blank has quotes; an option is spelled as a person types it."""
    assert command("plan", "demo") == "quota-ops plan demo"
    assert command("verify", run="/my runs/1") == "quota-ops verify --run '/my runs/1'"
    assert command("ping", run_store="s3://a/b") == "quota-ops ping --run-store s3://a/b"
