"""The option --since: how far a command looks back."""

from contextlib import suppress
from datetime import UTC, date, datetime

import click

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import parse_duration

since = click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far to look back: 30d, or the first day, 2026-11-01.",
)


_EXAMPLES = "Pass, for example, 30d or 2026-11-01."


def parse_since(text: str) -> str:
    """Return the first day (UTC) to look at.

    Raises InvalidInput if the text is no time in the past.
    """
    now = datetime.now(UTC)
    try:
        with suppress(ValueError):
            if (day := date.fromisoformat(text)) > now.date():
                raise InvalidInput(f"--since {text} is in the future", _EXAMPLES)
            return day.isoformat()
        return f"{now - parse_duration(text):%Y-%m-%d}"
    except (OverflowError, ValueError):
        raise InvalidInput(f"--since {text} is not a time in the past", _EXAMPLES) from None
