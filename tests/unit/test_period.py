"""The option --since: a duration or a day, in the past."""

from datetime import UTC, datetime, timedelta

import pytest

from quota_ops.cli.options import parse_since
from quota_ops.model.errors import InvalidInput


def test_the_first_day() -> None:
    """A duration ends today, a day is the first one, and today may be it."""
    today = datetime.now(UTC).date()

    assert parse_since("2026-11-01") == "2026-11-01"
    assert parse_since("1d") in {f"{today - timedelta(days=1)}", f"{today}"}
    assert parse_since(f"{today}") == f"{today}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2199-01-01", "--since 2199-01-01 is in the future"),
        ("yesterday", "--since yesterday is not a time in the past"),
        ("2026-11-31", "--since 2026-11-31 is not a time in the past"),
        ("0d", "--since 0d is not a time in the past"),
        ("99999999d", "--since 99999999d is not a time in the past"),
    ],
)
def test_what_is_no_day_in_the_past(text: str, message: str) -> None:
    """The error has the text and examples."""
    with pytest.raises(InvalidInput) as error:
        parse_since(text)

    assert error.value.message.startswith(message)
    assert error.value.remedy == "Pass, for example, 30d or 2026-11-01."
