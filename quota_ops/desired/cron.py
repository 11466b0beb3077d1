"""Times as cron writes them: their shape and range, and when they come."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

import yaml

from quota_ops.desired.yaml.scalars import Misread, read_text
from quota_ops.model.moment import find_zone

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
)
_FIELD = re.compile(r"[0-9A-Za-z*/,#-]+")
_LONGEST = 200
_NUMBER = re.compile(r"[0-9]+")
_PLAIN = re.compile(r"\*(/[1-9][0-9]*)?|[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")


def read_schedule(field: str, node: yaml.Node) -> str:
    """Five cron fields that come at some time, or a preset; Misread for anything else.

    Airflow reads them by the same croniter; a DAG file with others gives it no DAG at all.
    """
    text = read_text(field, node)
    if text not in PRESETS:
        _check(text, f"{field} must be five cron fields, or one of {', '.join(PRESETS)}.", field)
    return text


def read_cron(field: str, node: yaml.Node) -> str:
    """Five cron fields that come at some time; Misread for anything else."""
    text = read_text(field, node)
    _check(text, f"{field} must be five cron fields.", field)
    return text


def last_start(cron: str, zone: str, now: datetime) -> datetime:
    """The last moment up to `now` that five cron fields name on the clocks of a zone, in UTC.

    A local time that the clocks show twice counts once, the first time; one that they skip counts
    when they skip it. ValueError when there is none, such as on the 31st of February.
    """
    from croniter import croniter  # noqa: PLC0415 - half as long as all of check; rarely needed

    clocks = find_zone(zone)
    local = now.replace(microsecond=0).astimezone(clocks)
    repeated = local.astimezone(UTC) - local.replace(fold=0).astimezone(UTC)
    # croniter sees no zone, and looks before the moment that it is given: the next whole second,
    # or as far as the clocks went before they were set back.
    latest = local.replace(tzinfo=None) + repeated + timedelta(seconds=1)
    times = croniter(cron, latest)
    while (found := _first_moment(times.get_prev(datetime), clocks)) > now:
        pass
    return found


def _first_moment(local: datetime, clocks: tzinfo) -> datetime:
    """When a zone's clocks first show a whole minute, or skip it, in UTC."""
    while True:
        moment = local.replace(tzinfo=clocks).astimezone(UTC)
        if moment.astimezone(clocks).replace(tzinfo=None) == local:
            return moment
        local += timedelta(minutes=1)


def _check(text: str, message: str, field: str) -> None:
    parts = text.split() if len(text) <= _LONGEST else []
    if len(parts) != len(_FIELDS) or not all(map(_FIELD.fullmatch, parts)):
        raise Misread(message, f'For example {field}: "*/30 * * * *", every half hour.')
    for part, (name, low, high) in zip(parts, _FIELDS, strict=True):
        for number in _NUMBER.findall(part):
            if not low <= int(number) <= high:
                raise Misread(f"The {name} must be between {low} and {high}, not {number}.")
    minute, hour, day, month, weekday = parts
    if day == month == "*" and all(map(_PLAIN.fullmatch, (minute, hour, weekday))):
        return  # these come, and need no croniter
    try:
        last_start(text, "UTC", datetime.now(UTC))
    except ValueError as error:
        raise Misread(f"{text} never occurs: {error}.") from None
