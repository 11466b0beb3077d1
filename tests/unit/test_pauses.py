"""Whether anything may be written: paused, frozen by the clocks of a zone, or neither."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from quota_ops.desired.pauses import find_pause
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.plan import digest
from quota_ops.model.plans.policy import Freeze, Policy
from quota_ops.model.stored import from_json, to_json

HOUR = 3600
WEEKEND = Freeze("0 18 * * fri", "Europe/Berlin", 62 * HOUR, "the weekend")
NIGHT = Freeze("0 22 * * *", "America/New_York", 8 * HOUR, "the night")


def policy(*freeze: Freeze, paused: str | None = None) -> Policy:
    """Return a policy with these windows."""
    return Policy("demo", "id", "demo", freeze=freeze, paused=paused)


@pytest.mark.parametrize(
    ("freeze", "now", "until"),
    [
        (WEEKEND, "2026-11-20T16:59:59Z", None),
        (WEEKEND, "2026-11-20T17:00:00Z", "2026-11-23 07:00"),
        (WEEKEND, "2026-11-23T06:59:59Z", "2026-11-23 07:00"),
        (WEEKEND, "2026-11-23T07:00:00Z", None),
        (WEEKEND, "2026-07-03T16:00:00Z", "2026-07-06 06:00"),
        (WEEKEND, "2026-10-23T16:00:00Z", "2026-10-26 06:00"),
        (NIGHT, "2026-11-21T02:59:59Z", None),
        (NIGHT, "2026-11-21T03:00:00Z", "2026-11-21 11:00"),
    ],
)
def test_a_window(freeze: Freeze, now: str, until: str | None) -> None:
    """A freeze starts at the local time of its zone, summer and winter, and lasts real hours."""
    why = find_pause(policy(freeze), datetime.fromisoformat(now))

    assert why == (until and f"frozen until {until} UTC: {freeze.reason}")


CHANGES = {
    "Europe/Berlin": ("2026-03-29T01:00Z", "2026-10-25T01:00Z"),
    "America/New_York": ("2026-03-08T07:00Z", "2026-11-01T06:00Z"),
    "Australia/Lord_Howe": ("2026-10-03T15:30Z", "2026-04-04T15:00Z"),
}
"""When their clocks are set forward and back."""
STEP, AN_HOUR = timedelta(minutes=5), timedelta(hours=1)
SOME_MINUTES = st.lists(st.sampled_from(range(0, 60, 5)), min_size=1, max_size=3, unique=True)
SOME_HOURS = st.lists(st.integers(0, 4), min_size=1, max_size=2, unique=True)


def watch(
    zone: str, changed: datetime, minutes: Sequence[int], hours: Sequence[int], day: str
) -> dict[datetime, datetime | None]:
    """Step through the time; return the last start at each, for local times not seen before."""
    found: dict[datetime, datetime | None] = {}
    now = changed - 8 * AN_HOUR
    start, seen = None, now.astimezone(ZoneInfo(zone)).replace(tzinfo=None) - STEP
    while now < changed + 5 * AN_HOUR:
        local = now.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        while seen < local:
            seen += STEP
            named = seen.minute in minutes and seen.hour in hours
            if named and (day == "*" or f"{seen:%a}".lower() == day):
                start = now
        found[now] = start
        now += STEP
    return found


@settings(max_examples=4)
@pytest.mark.parametrize(
    ("zone", "change"), [(zone, one) for zone, both in CHANGES.items() for one in both]
)
@given(minutes=SOME_MINUTES, hours=SOME_HOURS, day=st.sampled_from(["*", "sun"]))
@example(minutes=[30], hours=[2], day="*")
@example(minutes=[30], hours=[1], day="sun")
@example(minutes=[0], hours=[2], day="sun")
@example(minutes=[15, 40], hours=[1, 2], day="*")
def test_a_window_while_the_clocks_change(
    zone: str, change: str, minutes: list[int], hours: list[int], day: str
) -> None:
    """A time that occurs twice starts a freeze once; a skipped one starts it when it is skipped."""
    changed = datetime.fromisoformat(change)
    cron = f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * {day}"
    freeze = Freeze(cron, zone, 2 * HOUR, "why")
    watched = watch(zone, changed, minutes, hours, day)
    expected, found = {}, {}
    for now, start in watched.items():
        if now < changed - 2 * AN_HOUR:
            continue
        end = start + 2 * AN_HOUR if start else now
        expected[now] = f"frozen until {end:%Y-%m-%d %H:%M} UTC: why" if end > now else None
        found[now] = find_pause(policy(freeze), now)

    assert found == expected


def test_of_several_the_last_to_close_counts() -> None:
    """Of overlapping freezes the one that ends last is shown; a pause is shown before a freeze."""
    now = datetime(2026, 11, 21, 5, tzinfo=UTC)

    why = "frozen until 2026-11-23 07:00 UTC: the weekend"
    assert find_pause(policy(NIGHT, WEEKEND), now) == find_pause(policy(WEEKEND, NIGHT), now) == why
    assert find_pause(policy(WEEKEND, paused="moving"), now) == "paused: moving"
    assert find_pause(policy(), now) is None


@pytest.mark.parametrize(
    "wrong", [{"zone": "Mars"}, {"cron": "0 0 31 2 *"}, {"duration": 10**15}, {"cron": "often"}]
)
def test_a_window_that_somebody_wrote_into_a_run_folder(wrong: dict[str, Any]) -> None:
    """An invalid freeze in a run folder is an error; it is never ignored."""
    with pytest.raises(InvalidInput, match=r"^a freeze of demo cannot be read: "):
        find_pause(policy(replace(NIGHT, **wrong)), datetime(2026, 11, 21, 5, tzinfo=UTC))


def test_when_is_no_part_of_what() -> None:
    """An approved plan is the same plan when a freeze ends or a pause starts."""
    assert digest(policy(), []) == digest(policy(WEEKEND, paused="moving"), [])
    assert from_json(Policy, to_json(Policy, policy(NIGHT, paused="x"))) == policy(
        NIGHT, paused="x"
    )
