"""Format times, and parse those that people type: `1d12h`, `2026-11-21 07:00 Europe/Berlin`."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger
    from zoneinfo import ZoneInfo

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
DURATION_PATTERN = rf"(?=[0-9]){''.join(f'([0-9]{{1,4}}{unit})?' for unit in _UNITS)}"
"""The pattern of a duration, as JSON Schema knows it too."""


def iso_utc(at: datetime | None = None) -> str:
    """Format a time, by default now, in UTC to the second: `2026-11-21T10:15:00Z`."""
    return f"{at or datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def uptime() -> float:
    """Return seconds of a clock that nobody sets; it counts while the machine is suspended, too.

    On a system without such a clock, it stands still then.
    """
    return time.clock_gettime(_CLOCK)


@contextmanager
def timed(log: "Logger", level: int, what: str) -> Iterator[None]:
    """Log how many milliseconds a block took, and the type of its error, but not the text."""
    began, end = time.monotonic(), ""
    try:
        yield
    except BaseException as error:
        end = f": {type(error).__name__}"
        raise
    finally:
        log.log(level, "%s, %.0f ms%s", what, (time.monotonic() - began) * 1000, end)


def parse_duration(text: str) -> timedelta:
    """Parse a duration, for example `90m` or `1d12h`.

    Raises ValueError if it is invalid or zero.
    """
    parts = re.fullmatch(DURATION_PATTERN, text.strip())
    if parts is None:
        raise ValueError(f"{text!r} is not a duration: write, for example, 30m, 2h or 1d12h")
    length = timedelta(**{_UNITS[part[-1]]: int(part[:-1]) for part in parts.groups() if part})
    if not length:
        raise ValueError(f"{text!r} is zero; choose a longer duration")
    return length


def format_duration(seconds: int) -> str:
    """Format seconds as `parse_duration` reads them, in the largest unit that fits: `7d`, `90m`."""
    sizes = {unit: timedelta(**{name: 1}) for unit, name in _UNITS.items()}
    length = timedelta(seconds=seconds)
    unit = next(unit for unit, size in sizes.items() if not length % size)
    return f"{length // sizes[unit]}{unit}"


def parse_until(text: str, now: datetime) -> datetime:
    """Parse a time after `now` to UTC: a duration from now, or a time with its zone.

    The zone is an offset (`2026-11-21T07:00+01:00`, `Z`) or a name (`2026-11-21 07:00
    Europe/Berlin`). Raises ValueError for a time without a zone, a past time and any other text.
    """
    if re.fullmatch(DURATION_PATTERN, text.strip()):
        return now + parse_duration(text)
    until = _parse(text, "neither a duration (2h) nor a time (2026-11-21 07:00 Europe/Berlin)")
    if until <= now:
        raise ValueError(f"{text!r} is in the past")
    return until


def parse_time(text: str) -> datetime:
    """Parse a time with its zone, as `parse_until` does, to UTC.

    Raises ValueError for any other text.
    """
    return _parse(text, "not a time: write, for example, 2027-01-31 07:00 Europe/Berlin")


def _parse(text: str, otherwise: str) -> datetime:
    try:
        time = _moment(text.strip())
        found = time.astimezone(UTC)
    except (ValueError, OverflowError):
        why = _explain_zone(text.strip())
        raise ValueError(f"{text!r} {why}" if why else f"{text!r} is {otherwise}") from None
    if time.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: add Z, +01:00 or a name like Europe/Berlin")
    if found.astimezone(time.tzinfo).replace(tzinfo=None) != time.replace(tzinfo=None):
        raise ValueError(f"{text!r} does not exist: clocks skip that hour on that day")
    if time.replace(fold=1).utcoffset() != time.utcoffset():
        raise ValueError(
            f"{text!r} occurs twice, because clocks go back: write an offset, such as +01:00, in "
            "place of the zone's name"
        )
    return found


def _explain_zone(text: str) -> str | None:
    """Return what is wrong with the zone of a time that is otherwise right; None if it is not."""
    from zoneinfo import available_timezones  # rarely needed

    clock, _, zone = text.rpartition(" ")
    try:
        datetime.fromisoformat(clock)
    except ValueError:
        return None
    if not zone[:1].isalpha():
        return None
    # CEST is as near to EST as a slip, and seven hours from it.
    close = [] if zone.isupper() else get_close_matches(zone, available_timezones(), n=1)
    meant = f"perhaps {close[0]}" if close else "write, for example, Europe/Berlin or +01:00"
    return f"has the time zone {zone}, which is not known: {meant}"


def _moment(text: str) -> datetime:
    clock, _, zone = text.rpartition(" ")
    if clock and zone[:1].isalpha():
        return datetime.fromisoformat(clock).replace(tzinfo=find_zone(zone))
    return datetime.fromisoformat(text)


def find_zone(name: str) -> "ZoneInfo":
    """Return the time zone with a name, for example Europe/Berlin.

    Raises ValueError if none has it.
    """
    from zoneinfo import ZoneInfo  # 3 ms, and rarely needed

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(
            f"{name!r} is not a time zone: write, for example, Europe/Berlin or UTC"
        ) from None
