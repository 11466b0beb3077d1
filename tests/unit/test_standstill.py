"""Whether anything may be written: paused, frozen by the clocks of a zone, or neither."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plan import digest
from quota_ops.model.policy import Freeze, Policy
from quota_ops.stages.standstill import standstill

HOUR = 3600
WEEKEND = Freeze("0 18 * * fri", "Europe/Berlin", 62 * HOUR, "the weekend")
NIGHT = Freeze("0 22 * * *", "America/New_York", 8 * HOUR, "the night")


def policy(*freeze: Freeze, paused: str | None = None) -> Policy:
    """A policy with these windows."""
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
    """It opens by the clocks of its zone, summer and winter, and lasts so many real hours."""
    why = standstill(policy(freeze), datetime.fromisoformat(now))

    assert why == (until and f"frozen until {until} UTC: {freeze.reason}")


def test_of_several_the_last_to_close_counts() -> None:
    """Whoever reads the reason learns when all of them are over; a pause has no end at all."""
    now = datetime(2026, 11, 21, 5, tzinfo=UTC)

    why = "frozen until 2026-11-23 07:00 UTC: the weekend"
    assert standstill(policy(NIGHT, WEEKEND), now) == standstill(policy(WEEKEND, NIGHT), now) == why
    assert standstill(policy(WEEKEND, paused="moving"), now) == "paused: moving"
    assert standstill(policy(), now) is None


@pytest.mark.parametrize(
    "wrong", [{"zone": "Mars"}, {"cron": "0 0 31 2 *"}, {"duration": 10**15}, {"cron": "often"}]
)
def test_a_window_that_somebody_wrote_into_a_run_folder(wrong: dict[str, Any]) -> None:
    """It is an error, and no window that is closed."""
    with pytest.raises(InvalidInput, match=r"^a freeze of demo cannot be read: "):
        standstill(policy(replace(NIGHT, **wrong)), datetime(2026, 11, 21, 5, tzinfo=UTC))


def test_when_is_no_part_of_what() -> None:
    """A plan that was approved is the same plan when a freeze is over or a pause begins."""
    assert digest(policy(), []) == digest(policy(WEEKEND, paused="moving"), [])
    assert Policy.from_json(policy(NIGHT, paused="x").as_json()) == policy(NIGHT, paused="x")
