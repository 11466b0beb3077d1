"""The times without writes: while cluster.yaml has `paused`, and in the windows of `freeze`."""

from datetime import UTC, datetime, timedelta

from quota_ops.model.errors import InvalidInput, Refused
from quota_ops.model.plans.policy import Policy


def find_pause(policy: Policy, now: datetime) -> str | None:
    """Return why runs may not write at a time, in words that follow "is"; None if they may.

    Raises InvalidInput for a window that check rejects.
    """
    if policy.paused is not None:
        return f"paused: {policy.paused}"
    if not policy.freeze:
        return None
    from quota_ops.desired.yaml.cron import last_start  # croniter, rarely needed

    try:
        windows = [
            (
                last_start(freeze.cron, freeze.zone, now) + timedelta(seconds=freeze.duration),
                freeze.reason,
            )
            for freeze in policy.freeze
        ]
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"a freeze of {policy.cluster} cannot be read: {error}") from error
    end, reason = max(windows)
    return f"frozen until {end:%Y-%m-%d %H:%M} UTC: {reason}" if end > now else None


def refuse_while_paused(policy: Policy) -> None:
    """Raise Refused if runs may not write now."""
    why = find_pause(policy, datetime.now(UTC))
    if why is not None:
        raise Refused(
            f"{policy.cluster} is {why}",
            "quota-ops writes nothing more. Plans and reports still work. Run again when the pause "
            "is over.",
        )
