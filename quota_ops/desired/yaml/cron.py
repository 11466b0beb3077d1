"""Cron expressions: their syntax and ranges, and the times that they name."""

from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256

from quota_ops.model.moment import find_zone

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}


def delay_schedule(schedule: str, name: str, longest: timedelta) -> str:
    """Return a schedule whose minutes are later by at most `longest`; `name` decides by how many.

    Each time stays in its hour: "0 6 * * *" may become "17 6 * * *", and "*/30 * * * *" may become
    "7,37 * * * *". A schedule of every minute stays as it is.
    """
    from croniter import croniter  # half as long as all of check; rarely needed

    fields = PRESETS.get(schedule, schedule)
    minutes = croniter.expand(fields)[0][0]
    if not longest or "*" in minutes:
        return schedule
    choices = min(60 - max(minutes), longest // timedelta(minutes=1) + 1)
    delay = int(sha256(name.encode()).hexdigest(), 16) % choices
    later = ",".join(str(minute + delay) for minute in minutes)
    return " ".join([later, *fields.split()[1:]])


def cron_at(time: str) -> str:
    """Return cron fields for the first whole minute from a time on (ISO 8601, UTC).

    They name that minute of every year.
    """
    minute = datetime.fromisoformat(time) + timedelta(seconds=59)
    return f"{minute.minute} {minute.hour} {minute.day} {minute.month} *"


def last_start(cron: str, zone: str, now: datetime) -> datetime:
    """Return the last time up to `now` that five cron fields name in a time zone, in UTC.

    A local time that occurs twice counts the first time; one that the clocks skip counts when
    they skip it. ValueError if there is none, for example on the 31st of February.
    """
    from croniter import croniter  # half as long as all of check; rarely needed

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


def next_start(schedule: str, now: datetime) -> datetime:
    """Return the first time after `now` of a cluster's schedule, which is in UTC."""
    from croniter import croniter  # half as long as all of check; rarely needed

    found: datetime = croniter(PRESETS.get(schedule, schedule), now).get_next(datetime)
    return found


def _first_moment(local: datetime, clocks: tzinfo) -> datetime:
    """Return when the clocks of a zone first show a whole minute, or skip it, in UTC."""
    while True:
        moment = local.replace(tzinfo=clocks).astimezone(UTC)
        if moment.astimezone(clocks).replace(tzinfo=None) == local:
            return moment
        local += timedelta(minutes=1)
