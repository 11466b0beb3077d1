"""Who is held, as a table."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from quota_ops.model.filter import EntityFilter
from quota_ops.model.hold import Hold
from quota_ops.model.moment import iso_utc
from quota_ops.model.policy import Policy
from quota_ops.report.screen import Row, Screen, Span, Table, Tone, line
from quota_ops.report.wording import moment

HEADINGS = ("who", "until", "by", "since", "why")


def holds_screen(words: Sequence[Hold], now: datetime) -> Screen:
    """A row for each word, what lasts at `now` apart from what has ended."""
    if not words:
        return (line("Nothing is held."),)
    return (Table(HEADINGS, tuple(_row(one, now) for one in words)),)


def who_holds(who: EntityFilter, lasting: Iterable[Hold]) -> Hold | None:
    """Return the longest hold that covers all of these entities; None when there is none."""
    covering = (one for one in lasting if one.who.covers(who))
    return max(covering, key=lambda one: one.until, default=None)


def released_words(
    policy: Policy,
    who: EntityFilter,
    lasting: Iterable[Hold],
    *,
    known: bool,
    standstill: str | None = None,
) -> Iterator[str]:
    """Yield what runs do with entities whose hold has ended; `known` is whether Git has any.

    `lasting` are the other holds: one may cover some of the entities, or all. `standstill` is why
    nothing may be written now.
    """
    lasting = tuple(lasting)
    if (held := who_holds(who, lasting)) is not None:
        until = moment(iso_utc(held.until))
        yield f"No run writes it before {until}, unless {held.who.text} is released too."
        return
    protected = [one for one in policy.protect if one.overlaps(who)]
    for entities in protected:
        yield f"cluster.yaml protects {entities.text}: no run ever writes it."
    if any(one.covers(who) for one in protected):
        return
    for one in lasting:
        if one.who.overlaps(who):
            yield f"{one.who.text} is still {one.text}."
    if not known:
        yield "Git describes no entity of that name: what the cluster stores of it is reported."
    if standstill is not None:
        yield f"{policy.cluster} is {standstill}: nothing is written before that ends."
    yield f"Runs follow Git again: quota-ops plan {policy.cluster} shows what the next one changes."


def _row(one: Hold, now: datetime) -> Row:
    until = "released" if one.is_release else moment(one.until.isoformat())
    tone = Tone.CHANGE if one.until > now else Tone.CONTEXT
    cells = (one.by, moment(one.at.isoformat()), one.reason)
    return Row((Span(one.who.text, Tone.STRONG), Span(until, tone), *map(Span, cells)))
