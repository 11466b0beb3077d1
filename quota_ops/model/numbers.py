"""How counts, plurals and percents are written, on every screen and in every message."""

from itertools import count

_ES = ("s", "x", "z", "ch", "sh")


def counted(number: int, noun: str) -> str:
    """Format a count and its noun: `1 quota`, `1,204 entities`."""
    return f"{number:,} {plural(number, noun)}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return the word for so many: `one` for 1, else `many`; a noun needs no `many`."""
    if number == 1:
        return one
    if many is not None:
        return many
    if one.endswith("y") and one[-2:-1] not in "aeiou":
        return f"{one[:-1]}ies"
    return f"{one}es" if one.endswith(_ES) else f"{one}s"


def format_percent(share: float) -> str:
    """Format a finite change in percent: `+50 %`, `-37.5 %`, `-99.97 %`.

    It has as many digits as it needs: a change that is not whole is never rounded to a whole
    number, so `-50 %` is never more than 50 %, and only a change to 0 is `-100 %`.
    """
    if share.is_integer():
        return f"{share:+,.0f} %"
    from_whole = 2 * abs(share - round(share))
    digits = next(one for one in count(1) if from_whole * 10**one > 1)  # fewer would be zeros
    return f"{share:+,.{digits}f} %"
