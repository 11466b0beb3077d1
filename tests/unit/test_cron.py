"""Every schedule that check accepts is valid for croniter, which Airflow uses."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from croniter import croniter
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.desired.yaml.cron import cron_at, delay_schedule, last_start
from quota_ops.desired.yaml.values import Misread, read_schedule

FIELD = st.from_regex(r"\*(/[0-9]{1,2})?|[0-9]{1,2}(-[0-9])?(,[0-7/*-]{1,3})?", fullmatch=True)


@given(st.lists(FIELD, min_size=5, max_size=5))
@example(["*/59", "23", "*", "*", "7-0"])
@example(["0", "0", "31", "2", "*"])
def test_what_is_accepted_comes(fields: list[str]) -> None:
    """Every accepted schedule has a next time."""
    text = " ".join(fields)
    with suppress(Misread):
        read_schedule("schedule", yaml.ScalarNode("tag:yaml.org,2002:str", text))
        assert last_start(text, "UTC", datetime.now(UTC)) <= datetime.now(UTC)


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
@example(datetime(2026, 11, 22, 6, 18, 59, 379_032, UTC))
@example(datetime(2026, 11, 22, 6, 19, 0, 0, UTC))
def test_every_minute_started_with_it(now: datetime) -> None:
    """A start is never ahead of its second, not even in the last second before it."""
    assert last_start("* * * * *", "UTC", now) == now.replace(second=0, microsecond=0)


@pytest.mark.parametrize(
    ("schedule", "later"),
    [
        ("0 6 * * *", "10 6 * * *"),
        ("*/30 * * * mon-fri", "26,56 * * * mon-fri"),
        ("@quarterly", "10 0 1 */3 *"),
        ("59 * * * *", "59 * * * *"),
        ("* * * * *", "* * * * *"),
    ],
)
def test_a_delayed_schedule(schedule: str, later: str) -> None:
    """The minutes are later, within their hour and in the same distance, each time the same."""
    assert delay_schedule(schedule, "demo", timedelta(minutes=45)) == later
    assert delay_schedule(schedule, "demo", timedelta(0)) == schedule


@given(st.lists(FIELD, min_size=5, max_size=5), st.text(), st.integers(0, 90))
def test_a_delayed_schedule_is_valid(fields: list[str], name: str, minutes: int) -> None:
    """It names as many times in an hour, none of them earlier or more than the delay later."""
    text = " ".join(fields)
    with suppress(Misread):
        read_schedule("schedule", yaml.ScalarNode("tag:yaml.org,2002:str", text))
        delayed = delay_schedule(text, name, timedelta(minutes=minutes))
        before, *others = croniter.expand(text)[0]
        after, *same = croniter.expand(delayed)[0]
        assert same == others
        if "*" not in before:
            (delay,) = {b - a for a, b in zip(before, after, strict=True)}
            assert 0 <= delay <= minutes
        else:
            assert after == before


@pytest.mark.parametrize(
    ("time", "fields"),
    [
        ("2026-12-01T18:00:00Z", "0 18 1 12 *"),
        ("2026-12-01T18:00:01Z", "1 18 1 12 *"),
        ("2026-12-31T23:59:30Z", "0 0 1 1 *"),
    ],
)
def test_the_first_minute_from_a_time_on(time: str, fields: str) -> None:
    """A run that starts in this minute starts when or after the time has come."""
    assert cron_at(time) == fields
