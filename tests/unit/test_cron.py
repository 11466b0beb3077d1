"""What check accepts as a schedule is one: croniter, by which Airflow reads it, is asked."""

from contextlib import suppress
from datetime import UTC, datetime

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.desired.cron import last_start, read_schedule
from quota_ops.desired.scalars import Misread

FIELD = st.from_regex(r"\*(/[0-9]{1,2})?|[0-9]{1,2}(-[0-9])?(,[0-7/*-]{1,3})?", fullmatch=True)


@given(st.lists(FIELD, min_size=5, max_size=5))
@example(["*/59", "23", "*", "*", "7-0"])
@example(["0", "0", "31", "2", "*"])
def test_what_is_accepted_comes(fields: list[str]) -> None:
    """No text passes check for which there is no moment."""
    text = " ".join(fields)
    with suppress(Misread):
        read_schedule("schedule", yaml.ScalarNode("tag:yaml.org,2002:str", text))
        assert last_start(text, "UTC", datetime.now(UTC)) <= datetime.now(UTC)
