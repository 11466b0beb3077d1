"""Text in messages: counts, plurals, percentages and invisible characters."""

import json
import re
import shlex
from collections.abc import Callable, Iterable
from itertools import count
from math import floor

_ES = ("s", "x", "z", "ch", "sh")


def counted(number: int, noun: str) -> str:
    """Format a count and its noun: `1 quota`, `1,204 entities`."""
    return f"{number:,} {plural(number, noun)}"


def plural(number: float, one: str, many: str | None = None) -> str:
    """Return the word for a count: `one` for 1, else `many` or, without it, the regular plural."""
    if number == 1:
        return one
    if many is not None:
        return many
    if one.endswith("y") and one[-2:-1] not in "aeiou":
        return f"{one[:-1]}ies"
    return f"{one}es" if one.endswith(_ES) else f"{one}s"


def command(name: str, *words: object, **options: object) -> str:
    """Return a command of quota-ops as a person types it, with quotes where a shell needs them."""
    parts = [name, *words]
    for option, value in options.items():
        parts += [f"--{option.replace('_', '-')}", value]
    return shlex.join(["quota-ops", *map(str, parts)])


def name_first(
    names: Iterable[str], most: int = 1, quoted: Callable[[str], str] = str, *, between: str = ", "
) -> str:
    """Return the first names, and how many more there are: `alice, bob and 1,204 more`.

    `quoted` is applied to each of the names.
    """
    names = list(names)
    more = f" and {len(names) - most:,} more" if names[most:] else ""
    return between.join(map(quoted, names[:most])) + more


def format_percent(share: float) -> str:
    """Format a finite change in percent: `+50 %`, `-37.5 %`, `-99.97 %`.

    It has as many digits as it needs: a change that is not whole is never rounded to a whole
    number, so `-50 %` is never more than 50 %, and only a change to 0 is `-100 %`.
    """
    if share.is_integer():
        return f"{share:+,.0f} %"
    from_whole = 2 * abs(share - round(share))
    digits = next(
        places for places in count(1) if from_whole * 10**places > 1
    )  # fewer would be zeros
    return f"{share:+,.{digits}f} %"


def floor_percent(share: float) -> str:
    """Format a share in whole percent, rounded down: 0.29 is `29 %`, and 0.999 is `99 %`."""
    return f"{floor(round(100 * share, 6))} %"


UNSEEN = re.compile(
    "[\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are shown as nothing (Default_Ignorable_Code_Point, marks) or as a space."""


def is_visible(text: str) -> bool:
    """Return whether each character of a text is visible or a plain space."""
    return text.isprintable() and (text.isascii() or UNSEEN.search(text) is None)


def clean_text(text: str) -> str:
    """Return the text as one line, with invisible characters and invalid text escaped.

    Each run of white space becomes one space, and is removed at both ends. The result is empty if
    nothing in the text is visible.
    """
    line = " ".join(text.encode(errors="backslashreplace").decode().split())
    if is_visible(line):
        return line
    if not any(char.isprintable() and char != " " for char in UNSEEN.sub("", line)):
        return ""
    return "".join(char if is_visible(char) else json.dumps(char)[1:-1] for char in line)
