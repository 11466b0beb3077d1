"""Holds and releases as screens."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from quota_ops.model.filter import EntityFilter
from quota_ops.model.hold import Hold
from quota_ops.model.moment import iso_utc
from quota_ops.model.policy import Policy
from quota_ops.report.formats import moment
from quota_ops.report.screen import Row, Screen, Span, Table, Tone, line

HEADINGS = ("who", "until", "by", "since", "why")
_UNKNOWN = "Neither Git nor the ledger has an entity of that name: check the spelling."


def holds_screen(words: Sequence[Hold], now: datetime) -> Screen:
    """Return a row for each hold or release; those in force at `now` are highlighted."""
    if not words:
        return (line("Nothing is held."),)
    return (Table(HEADINGS, tuple(_row(one, now) for one in words)),)


def hold_screen(policy: Policy, hold: Hold, *, is_known: bool) -> Screen:
    """Return what a new hold means; `is_known` is whether such an entity exists."""
    more = "Until then, runs leave it unchanged and report it; after that, they follow Git again."
    return _kept(policy, hold, f"is {hold.text}", [more, *([] if is_known else [_UNKNOWN])])


def release_screen(
    policy: Policy,
    release: Hold,
    lasting: Sequence[Hold],
    *,
    is_described: bool,
    standstill: str | None,
) -> Screen:
    """Return what a new release means; the other arguments as in `released_words`."""
    who = release.who
    more = released_words(policy, who, lasting, known=is_described, standstill=standstill)
    held = who_holds(who, lasting)
    words = f"is released, and still {held.text} ({held.who.text})" if held else "is no longer held"
    return _kept(policy, release, words, more)


def _kept(policy: Policy, hold: Hold, words: str, more: Iterable[str]) -> Screen:
    where = f"{policy.cluster} ({policy.cluster_id}): {hold.who.text} {words}"
    return (line(where, Tone.STRONG), *(line(one, Tone.CONTEXT) for one in more))


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

    `lasting` are the other holds, which may cover some or all of the entities. `standstill` is why
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
        yield (
            "Git declares no entity of that name: quotas that the cluster stores for it are "
            "reported."
        )
    if standstill is not None:
        yield f"{policy.cluster} is {standstill}: nothing is written before that ends."
    yield f"Runs follow Git again: quota-ops plan {policy.cluster} shows what the next one changes."


def _row(one: Hold, now: datetime) -> Row:
    until = "released" if one.is_release else moment(one.until.isoformat())
    tone = Tone.CHANGE if one.until > now else Tone.CONTEXT
    cells = (one.by, moment(one.at.isoformat()), one.reason)
    return Row((Span(one.who.text, Tone.STRONG), Span(until, tone), *map(Span, cells)))
