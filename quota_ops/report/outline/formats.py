"""The formats of numbers, times, commits and text from outside, the same in every output."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil, floor
from unicodedata import is_normalized

from quota_ops.model.commit import MOST_UNCOMMITTED, CommitSource, Provenance, is_git, short
from quota_ops.model.quotas.quota import BYTES, QUOTA_KEYS, format_number

MINUTE = 60
_TWO_DIGITS = 10
_STATED: Mapping[CommitSource | None, str] = {
    CommitSource.GIVEN: " (as given, not compared)",
    CommitSource.AIRFLOW: " (as Airflow states, not compared)",
}


def escape_text(text: str) -> str:
    """Return the text as one line that is safe to print, with JSON escapes where needed.

    Every control character, terminal escape, line end and direction mark is escaped. So is all that
    is not ASCII in a text with decomposed letters, which looks like another name with the composed
    ones.
    """
    if text.isascii() and text.isprintable():
        return text
    is_plain = str.isprintable if is_normalized("NFC", text) else _is_plain_ascii
    return "".join(char if is_plain(char) else json.dumps(char)[1:-1] for char in text)


def _is_plain_ascii(char: str) -> bool:
    return char.isascii() and char.isprintable()


def shortened(text: str, most: int) -> str:
    """Return the text; a longer one is cut to `most` characters and an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def file_size(size: int) -> str:
    """Return a number of bytes as text: `512 B`, `99 MB`, `1.2 GB`."""
    for power, unit in ((9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**power - 10**power // 2000:  # 999.6 kB is 1.0 MB, not 1,000 kB
            number = size / 10**power
            return f"{number:,.0f} {unit}" if number >= _TWO_DIGITS else f"{number:.1f} {unit}"
    return f"{size} B"


def format_rate(key: str, value: float) -> str:
    """Format a measured rate with three digits: `1.04 MB/s`, `12.5 %`, `1,050 %`."""
    units = _BYTE_UNITS if QUOTA_KEYS[key].unit == BYTES else ((1.0, QUOTA_KEYS[key].unit),)
    size, unit = next((each for each in units if value >= each[0]), units[-1])
    return f"{format_number(float(f'{value / size:.3g}'))} {unit}"


_BYTE_UNITS = ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s"))


@lru_cache(maxsize=1024)  # the rows of a report share the times of a few runs
def moment(at: str | None) -> str:
    """Return an ISO 8601 time as text, in UTC: `2026-11-21 10:15 UTC`."""
    if not at:
        return ""
    try:
        time = datetime.fromisoformat(at)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError):
        return escape_text(at)


def duration(seconds: float) -> str:
    """Return a length of time as text: `31 ms`, `9.8 s`, `2 min 04 s`, `3 h 05 min`; at least 0."""
    seconds = max(0.0, seconds)
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(round(seconds, 1)), MINUTE)
    if minutes < MINUTE:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // MINUTE:,} h {minutes % MINUTE:02} min"


_UNITS = ((3600, 3600, "h", 10), (90, 60, "min", 1), (0, 1, "s", 1))
"""From how many seconds on a unit is used, its seconds and name, and its parts that are shown."""


def format_seconds(seconds: float, round_to: Callable[[float], int] = round) -> str:
    """Return a time of some seconds in its largest unit: `0`, `18 s`, `12 min`, `2.5 h`."""
    if not seconds:
        return "0"
    _, size, unit, parts = next(unit for unit in _UNITS if seconds >= unit[0])
    return f"{round_to(seconds / size * parts) / parts:g} {unit}"


def format_span(least: float, most: float) -> str:
    """Return a range of seconds: `1.1 to 3.2 h`; its ends are rounded away from each other."""
    if least == most:
        return format_seconds(most)
    _, size, unit, parts = next(unit for unit in _UNITS if most >= unit[0])
    low, high = floor(least / size * parts) / parts, ceil(most / size * parts) / parts
    if not low:
        return f"up to {high:g} {unit}"
    return f"{low:g} {unit}" if low == high else f"{low:g} to {high:g} {unit}"


def at_commit(provenance: Provenance) -> str:
    """Return the commit of a run for headings: `at a1b2c3d`, `with uncommitted changes in …`."""
    if provenance.uncommitted:
        return f"with {describe_uncommitted(provenance)}"
    return f"at {short_commit(provenance.commit)}{describe_stated_commit(provenance)}"


def describe_stated_commit(provenance: Provenance) -> str:
    """Return the source of a commit that was not compared with the files; otherwise empty."""
    return _STATED.get(provenance.source, "") if is_git(provenance.commit or "") else ""


def describe_uncommitted(provenance: Provenance, quoted: Callable[[str], str] = escape_text) -> str:
    """Return `uncommitted changes in team.yaml and 2 more since a1b2c3d`."""
    first, *others = provenance.uncommitted
    least = "at least " if len(provenance.uncommitted) == MOST_UNCOMMITTED else ""
    more = f" and {least}{len(others)} more" if others else ""
    since = f" since {short_commit(provenance.base)}" if provenance.base else ""
    return f"uncommitted changes in {quoted(first)}{more}{since}"


def short_commit(commit: str | None) -> str:
    """Return the first seven characters of a commit, as Git shows it."""
    return escape_text(short(commit)) if commit else "unknown commit"
