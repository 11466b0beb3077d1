"""Durations and times as people type them."""

from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.model.moment import find_zone, parse_duration, parse_time, parse_until, uptime

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30m", timedelta(minutes=30)),
        ("2h", timedelta(hours=2)),
        (" 1d12h ", timedelta(days=1, hours=12)),
        ("1h30m15s", timedelta(hours=1, minutes=30, seconds=15)),
        ("9999d", timedelta(days=9999)),
    ],
)
def test_lengths_of_time(text: str, length: timedelta) -> None:
    """Days, hours, minutes and seconds, from long to short; added to now they give a time."""
    assert parse_duration(text) == length
    assert parse_until(text, NOW) == NOW + length


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("2026-11-21T07:00+01:00", datetime(2026, 11, 21, 6, tzinfo=UTC)),
        ("2026-11-21 07:00Z", datetime(2026, 11, 21, 7, tzinfo=UTC)),
        ("2026-11-21 07:00 Europe/Berlin", datetime(2026, 11, 21, 6, tzinfo=UTC)),
        ("2027-07-01 07:00 Europe/Berlin", datetime(2027, 7, 1, 5, tzinfo=UTC)),
        ("2026-11-22 UTC", datetime(2026, 11, 22, tzinfo=UTC)),
    ],
)
def test_moments_with_a_zone(text: str, until: datetime) -> None:
    """A zone is an offset or a name; the time is the same, written in UTC."""
    assert parse_until(text, NOW) == until
    assert parse_until(text, NOW).tzinfo is UTC
    assert parse_time(text) == until


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0h", "is zero; choose a longer duration"),
        ("2026-11-21 07:00", "has no time zone"),
        ("2026-11-21T04:00+01:00", "is in the past"),
        ("tomorrow", "is neither a duration"),
        ("2 h", "is neither a duration"),
        ("2026-11-21 07:00 Mars/Olympus", "has the time zone Mars/Olympus, which is not known"),
        ("2026-11-21 07:00 Europe/Berln", "has .* not known: perhaps Europe/Berlin"),
        ("2026-11-21 25:00", "is neither a duration"),
        ("2027-03-28 02:30 Europe/Berlin", "does not exist: clocks skip that hour on that day"),
        ("2027-10-31 02:30 Europe/Berlin", "occurs twice, because clocks go back: write an offset"),
        ("10000000d", "is neither a duration"),
        ("9999-12-31T23:59-12:00", "is neither a duration"),
        ("", "is neither a duration"),
    ],
)
def test_what_is_no_moment(text: str, why: str) -> None:
    """An ambiguous text is rejected, and shown."""
    with pytest.raises(ValueError, match=f"^'{text}' {why}".replace("+", r"\+")):
        parse_until(text, NOW)


def test_a_time_may_be_past_but_is_no_duration() -> None:
    """A time in a file may be past; a duration has no beginning there."""
    assert parse_time("2026-11-21T04:00+01:00") == datetime(2026, 11, 21, 3, tzinfo=UTC)
    with pytest.raises(ValueError, match="'2h' is not a time"):
        parse_time("2h")


def test_what_is_no_length_and_no_zone() -> None:
    """A duration without a unit and an unknown zone are named."""
    with pytest.raises(ValueError, match="'90' is not a duration"):
        parse_duration("90")
    for name in ("Berlin", "../etc/passwd", ""):
        with pytest.raises(ValueError, match="is not a time zone"):
            find_zone(name)


def test_the_clock_that_nobody_sets_does_not_go_back() -> None:
    """The age of a description is measured with it, so a corrected clock makes none younger."""
    times = [uptime() for _ in range(100)]

    assert times == sorted(times)
