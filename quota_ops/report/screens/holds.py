"""Holds and releases as screens."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.policy import DriftPolicy, Policy
from quota_ops.model.quotas.filter import EntityFilter, EntityGroup
from quota_ops.model.text import command, name_first
from quota_ops.report.outline.formats import moment
from quota_ops.report.outline.layout import Cells, Screen, Span, Table, Tone, line

_MOST_NAMES = 3
"""The most entities of a group that are listed."""
HEADINGS = ("who", "until", "by", "since", "why")
_UNKNOWN = (
    "Neither Git nor the ledger has an entity of that name, and no run has found it on the "
    "cluster: check the spelling."
)


def holds_screen(words: Sequence[Hold], now: datetime) -> Screen:
    """Return a row for each hold or release; those in force at `now` are highlighted."""
    if not words:
        return (line("Nothing is held."),)
    return (Table.of(HEADINGS, (_list_cells(hold, now) for hold in words)),)


def hold_screen(
    policy: Policy, hold: Hold, lasting: Sequence[Hold], replaced: Hold | None, *, is_known: bool
) -> Screen:
    """Return the effects of a new hold.

    `lasting` are all holds in force, `replaced` is the one of the same entities that it ends;
    `is_known` is whether an entity of the hold exists.
    """
    longer = find_covering_hold(
        hold.who, [other_hold for other_hold in lasting if other_hold.until > hold.until]
    )
    if never := _never_written(policy, hold.who):
        more = [*never, "It is reported, held or not."]
    elif longer is not None:
        more = [f"Runs leave it unchanged and report it, and {longer.who.text} is {longer.text}."]
    else:
        more = [
            "Until then, runs leave it unchanged and report it.",
            _next(policy, "After that, runs"),
        ]
    before = [f"It was {replaced.text}."] if replaced else []
    unknown = [] if is_known else [_UNKNOWN]
    return _kept(policy, hold, f"is {hold.text}", [*before, *more, *unknown])


def release_screen(
    policy: Policy, release: Hold, lasting: Sequence[Hold], more: Iterable[str]
) -> Screen:
    """Return the effects of a new release; `more` is what `describe_released` yields of it."""
    held = find_covering_hold(release.who, lasting)
    words = f"is released, and still {held.text} ({held.who.text})" if held else "is no longer held"
    return _kept(policy, release, words, more)


def _kept(policy: Policy, hold: Hold, words: str, more: Iterable[str]) -> Screen:
    where = f"{policy.cluster} ({policy.cluster_id}): {_name_held(hold.who)} {words}"
    return (line(where, Tone.STRONG), *(line(text, Tone.CONTEXT) for text in more))


def _name_held(who: EntityFilter | EntityGroup) -> str:
    """Return the text of held entities, with the first names of a group."""
    if isinstance(who, EntityFilter) or not who.entities:
        return who.text
    return f"{who.text} ({name_first(sorted(who.entities), _MOST_NAMES)})"


def find_covering_hold(who: EntityFilter | EntityGroup, lasting: Iterable[Hold]) -> Hold | None:
    """Return the longest hold that covers all of these entities; None when there is none."""
    covering = (hold for hold in lasting if hold.who.covers(who))
    return max(covering, key=lambda hold: hold.until, default=None)


def describe_released(
    policy: Policy,
    who: EntityFilter | EntityGroup,
    lasting: Iterable[Hold],
    *,
    is_declared: bool,
    is_managed: bool = False,
    standstill: str | None = None,
) -> Iterator[str]:
    """Yield what runs do with entities whose hold has ended.

    `is_declared` is whether Git declares any of them, and `is_managed` whether the ledger has any.
    `lasting` are the other holds, which may cover some or all of the entities. `standstill` is the
    reason why nothing may be written now.
    """
    lasting = tuple(lasting)
    if never := _never_written(policy, who):
        yield from never
        return
    if (held := find_covering_hold(who, lasting)) is not None:
        until = moment(iso_utc(held.until))
        yield f"No run writes it before {until}, unless {held.who.text} is released too."
        return
    for entities in policy.protect:
        if entities.overlaps(who):
            yield f"cluster.yaml protects {entities.text}: no run ever writes it."
    for hold in lasting:
        if hold.who.overlaps(who):
            yield f"{hold.who.text} is still {hold.text}."
    if not is_declared:
        yield f"Git declares no entity of that name: {_undeclared(policy, is_managed=is_managed)}"
    if standstill is not None:
        yield f"{policy.cluster} is {standstill}: nothing is written before that ends."
        yield _next(policy, "After that, runs")
        return
    yield _next(policy, "Runs")


def _undeclared(policy: Policy, *, is_managed: bool) -> str:
    """Return what runs do with the quotas of an entity that Git does not declare."""
    clears = "the next reconcile clears {}, unless a guard blocks it or it needs approval."
    if policy.clear_unmanaged:
        return clears.format("every quota of it in scope")
    if is_managed:
        return clears.format("its managed quotas") + " Others are reported."
    return "quotas that the cluster stores for it are reported."


def _never_written(policy: Policy, who: EntityFilter | EntityGroup) -> list[str]:
    """Return the reasons why no run ever writes these entities; empty if runs may write some."""
    return [
        f"cluster.yaml protects {entities.text}: no run ever writes it."
        for entities in policy.protect
        if entities.covers(who)
    ][:1]


def _next(policy: Policy, runs: str) -> str:
    """Return what runs do with an entity that is not held; the sentence begins with `runs`."""
    plan = command("plan", policy.cluster)
    if policy.drift is DriftPolicy.REPORT:
        return (
            f"{runs} apply changes in Git, and only report values that were changed outside Git, "
            f"because of drift: report. {plan} shows both."
        )
    return f"{runs} follow Git again. {plan} shows what the next one changes."


def _list_cells(hold: Hold, now: datetime) -> Cells:
    until = "released" if hold.is_release else moment(hold.until.isoformat())
    tone = Tone.CHANGE if hold.until > now else Tone.CONTEXT
    who = Span(_name_held(hold.who), Tone.STRONG)
    return who, Span(until, tone), hold.by, moment(hold.at.isoformat()), hold.reason
