"""The throttling that the cuts of a plan would have caused in the last days, in words."""

from math import ceil, floor

from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.text import counted, floor_percent
from quota_ops.model.usage.throttling import CutUse, Delays, Throttling
from quota_ops.report.outline.formats import format_rate, format_seconds, format_span

MOST = 10
"""How many cuts get a sentence of their own; the JSON report has all."""


def describe_throttling(found: Throttling | None) -> tuple[str, ...]:
    """Return a sentence for each cut, the longest throttling first; none without any use to read.

    `user=etl producer_byte_rate would have throttled user=etl for at least 1.1 to 3.2 h in the
    last 7 days, with delays up to 18 s (seen 97 % of that time, broker kafka-1:9404).`
    """
    if found is None:
        return ()
    if found.trouble:
        why = " ".join(found.trouble.split())
        return (f"Whom the cuts would have throttled cannot be determined: {why}",)
    cuts = sorted(found.cuts, key=_rank)
    more = len(cuts) - MOST
    return (
        *(_format_cut(cut, found.days) for cut in cuts[:MOST]),
        *(
            [f"… and {counted(more, 'more cut')}; the JSON report has them all."]
            if more > 0
            else []
        ),
    )


def _rank(cut: CutUse) -> tuple[float, bool, str, str]:
    worst = cut.worst
    return -(worst.delayed if worst else 0.0), worst is not None, cut.entity, cut.key


def _format_cut(cut: CutUse, days: int) -> str:
    row, worst = f"{cut.entity} {cut.key}", cut.worst
    words = []
    if worst is not None:
        words.append(f"{row} {_format_delays(cut.key, worst, days)}.")
        others = sum(group.delayed > 0 for group in cut.delays) - 1
        if others > 0:
            words.append(f"{counted(others, 'other')} would have been throttled for less time.")
    elif cut.below or not cut.why:
        words.append(f"{row} is above all recorded use.")
    else:
        return f"{row}: whom it would have throttled cannot be determined, because {cut.why}."
    if cut.below or worst is None:
        seen = f"{floor_percent(cut.recorded)} of {days} days are recorded"
        words.append(f"{counted(cut.below, 'client')} stayed below it ({seen}).")
    if cut.why:
        words.append(f"For others that cannot be determined, because {cut.why}.")
    return " ".join(words)


def _format_delays(key: str, worst: Delays, days: int) -> str:
    seen = f"seen {floor_percent(worst.share)} of that time"
    if not worst.delayed:
        highest = (
            f"the highest that was seen of {worst.shared_by} is {format_rate(key, worst.highest)}"
        )
        return f"is above all use that was seen in the last {days} days: {highest} ({seen})"
    measured = QUOTA_KEYS[key].measured
    is_open = measured is not None and measured.hides_use
    longer = " or longer" if measured is not None and measured.is_repeated else ""
    span = (
        format_seconds(worst.least, floor) if is_open else format_span(worst.least, worst.delayed)
    )
    if is_open or not (worst.is_whole or longer):
        span = f"at least {span}"
    delays = f", with delays up to {format_seconds(worst.longest, ceil)}{longer}"
    hidden = ""
    if worst.at_present:
        reached = format_seconds(worst.at_present, floor)
        hidden = (
            f"; it used 97 % of its present limit or more for {reached}, and delays add to those "
            "of that limit if it was in force then"
        )
    return (
        f"would have throttled {worst.shared_by} for {span}{longer} in the last {days} days"
        f"{'' if is_open else delays} ({seen}, broker {worst.broker}{hidden})"
    )
