"""Every schedule that check accepts is valid for croniter, which Airflow uses."""

from contextlib import suppress
from datetime import UTC, datetime

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.desired.cron import last_start, read_schedule
from quota_ops.desired.yaml.scalars import Misread

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
