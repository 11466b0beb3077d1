"""Schedules as cron and Airflow write them: their shape and range, nothing computed."""

import re

import yaml

from quota_ops.desired.scalars import Misread, read_text

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
)
_FIELD = re.compile(r"[0-9A-Za-z*/,#-]+")
_NUMBER = re.compile(r"[0-9]+")


def read_schedule(field: str, node: yaml.Node) -> str:
    """Five cron fields or a preset; Misread for anything else."""
    text = read_text(field, node)
    if text in PRESETS:
        return text
    parts = text.split()
    if len(parts) != len(_FIELDS) or not all(map(_FIELD.fullmatch, parts)):
        raise Misread(
            f"{field} must be five cron fields, or one of {', '.join(PRESETS)}.",
            f'Such as {field}: "*/30 * * * *", every half hour.',
        )
    for part, (name, low, high) in zip(parts, _FIELDS, strict=True):
        for number in _NUMBER.findall(part):
            if not low <= int(number) <= high:
                raise Misread(f"The {name} {number} is not between {low} and {high}.")
    return text
