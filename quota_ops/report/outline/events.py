"""The events of a history: changes and drifts, in the words that all outputs share."""

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple, Self

from quota_ops.model.history.history import Drift, HistoryRow, Mode
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.hold import Hold
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.quota import same
from quota_ops.model.runs.outcome import ATTEMPTED, Status
from quota_ops.model.runs.stages import StageStatus
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import moment
from quota_ops.report.outline.layout import Tone


class Event(NamedTuple):
    """Something that happened to a quota, the entities of a hold or the policy, and by whom."""

    at: str
    entity: str
    """Empty for a policy."""
    key: str | None
    """None for a hold or its release, and for a policy."""
    what: str
    before: float | None = None
    """Of a drift, the value that Git declares; its kind tells whether the cluster stored that."""
    was_sent: bool = False
    """Whether the run sent it to a broker, at least to be validated."""
    requested: float | None = None
    """The value that it sent; None if it was to clear the quota."""
    found: float | None = None
    """What the cluster stored at the last look after it; None also if no run has looked."""
    found_by: str | None = None
    """The run that looked: the same one or, for a write without a response, a later one."""
    owner: str | None = None
    by: str | None = None
    """The author of the commit, if a run applied Git; otherwise who ran it."""
    ran_by: str | None = None
    """The person or job that ran it, if known."""
    reason: str | None = None
    commit: str | None = None
    commit_author: str | None = None
    approver: str | None = None
    run: str | None = None
    kind: str | None = None
    """Of a drift, why it differs from Git."""
    policy: str | None = None
    """The fields of cluster.yaml that a policy changes."""
    follows_git: bool = False
    """Whether a run that applied Git did it, or tried."""
    tone: Tone = Tone.PLAIN

    @property
    def person(self) -> str:
        """Who changed it, and why.

        The reason of a run that applied Git was given by the person who approved it.
        """
        if self.follows_git and self.reason:
            by = f"{self.by}; " if self.commit_author else ""
            return f"{by}{self.approver}: {self.reason}"
        return ": ".join(filter(None, (self.by, self.reason)))

    def credit(self, author: str | None) -> Self:
        """Return the event with the author of its commit, who changed it if a run applied Git."""
        if self.follows_git and author:
            return self._replace(by=author.partition(" <")[0], commit_author=author)
        return self._replace(by=self.ran_by, commit_author=author)


def list_events(drifts: Iterable[Drift], rows: Iterable[HistoryRow]) -> tuple[Event, ...]:
    """Return the drifts and the writes of quotas in order; looks that saw the same are one.

    Of the same second, a drift comes before the writes, but after one that wrote the value it
    found; the end of a drift comes after the write that removed it.
    """
    found, writes = tuple(drifts), tuple(_list_writes(rows))
    wrote = {
        (write.at, write.entity, write.key, write.requested): place
        for place, write in enumerate(writes, start=1)
        if write.was_sent
    }
    events = [
        *enumerate(writes, start=1),
        *(
            (wrote.get((drift.at, drift.entity, drift.key, drift.found), 0), drift)
            for drift in _list_drifts(found)
        ),
        *(
            (len(writes) + 1, end)
            for end in _list_drift_ends(
                drift for drift in found if not _is_taken_over(drift, writes)
            )
        ),
    ]
    return tuple(event for _, event in sorted(events, key=lambda event: (event[1].at, event[0])))


_PLAIN = frozenset({Kind.DRIFTED, Kind.OVERRIDING})
"""The kinds of drift that need no other word."""


def _list_drifts(drifts: Iterable[Drift]) -> Iterator[Event]:
    for drift in drifts:
        seen = counted(drift.times_seen, "run")
        what = drift.kind if drift.kind in _PLAIN else f"drifted ({drift.kind.replace('_', ' ')})"
        yield Event(
            drift.since,
            drift.entity,
            drift.key,
            f"{what}, seen by {seen}",
            before=drift.desired,
            found=drift.actual,
            found_by=drift.run,
            owner=drift.owner,
            run=drift.run,
            kind=drift.kind,
            tone=Tone.REFUSAL,
        )


def _is_taken_over(drift: Drift, writes: Iterable[Event]) -> bool:
    """Return whether an overriding quota was adopted: clients get it all the same."""
    return any(
        write.what == _UNSENT[Mode.ADOPT]
        and write[1:3] == (drift.entity, drift.key)
        and drift.since <= write.at <= (drift.repaired or _NEVER)
        for write in writes
    )


def _list_drift_ends(drifts: Iterable[Drift]) -> Iterator[Event]:
    for drift in drifts:
        if drift.repaired and drift.repaired_by is None:
            kind = Kind.OVERRIDING if drift.kind == Kind.OVERRIDING else Kind.DRIFTED
            what = f"no longer {kind}"
            yield Event(
                drift.repaired, drift.entity, drift.key, what, owner=drift.owner, tone=Tone.OK
            )


_NEVER = "9999"
"""After every time."""
REPAIRED = "repaired"
_APPROVED = "policy approved"
_WORDS = {Mode.APPLY: "set", Mode.ROLLBACK: "rolled back", Mode.ALTER: "altered"}
_UNSENT = {Mode.ADOPT: "adopted", Mode.RELEASE: "released", Mode.FOUND: "found as in Git"}


def _rank_row(row: HistoryRow) -> tuple[str, int, str, str]:
    return row.ended, row.sequence or 0, row.entity or "", row.key or ""


def _list_writes(rows: Iterable[HistoryRow]) -> Iterator[Event]:
    """Yield what each run did to each quota, once: at its first end, as its last end knows it."""
    ends: dict[tuple[str, str, str], list[HistoryRow]] = {}
    # The end of a run that died may have been recorded after that of the run that found its writes.
    for row in sorted(rows, key=lambda row: (row.sequence or 0, _rank_row(row))):
        if row.entity is not None and row.key is not None:
            ends.setdefault((row.run, row.entity, row.key), []).append(row)
    owners: dict[tuple[str, str], str] = {}
    authors: dict[tuple[str, str, str | None], str] = {}
    stored: dict[tuple[str, str], float | None] = {}
    for (_, entity, key), found in ends.items():
        owner = next((row.owner for row in reversed(found) if row.owner), None)
        owners |= {(entity, key): owner} if owner else {}
        wrote = [row for row in found if row.outcome in ATTEMPTED or row.mode in _UNSENT]
        if not wrote or _altered_nothing(wrote[-1]):
            continue
        # A later approval of the rest was not about a row that was written before it.
        done = next(row for row in wrote if row.outcome == wrote[-1].outcome)
        event = _describe_write(wrote[0], done, found[-1])
        author = event.commit_author or authors.get((entity, key, event.commit))
        authors |= {(entity, key, event.commit): author} if author else {}
        left = done.found if done.mode in _UNSENT else done.requested
        # A run that was killed before it read its write back, or an alter, has set what this found.
        is_told = (entity, key) in stored and same(stored[entity, key], left)
        if done.mode != Mode.FOUND or not is_told:
            # The commit of a repair belongs to an earlier run; an alter does not record the owner.
            yield event._replace(owner=owners.get((entity, key))).credit(author)
        if done.mode in _UNSENT or done.outcome == Status.ACCEPTED:
            stored[entity, key] = left


def _altered_nothing(row: HistoryRow) -> bool:
    """Return whether an alter sent the value that the cluster stored already."""
    is_accepted = row.mode == Mode.ALTER and row.outcome == Status.ACCEPTED
    return is_accepted and same(row.actual, row.requested)


def _list_policies(rows: Iterable[HistoryRow]) -> Iterator[Event]:
    """Yield each policy that somebody approved, at the first end of the run that applied it."""
    ends: dict[str, HistoryRow] = {}
    for row in sorted(rows, key=_rank_row):
        if row.entity is None and row.policy:
            ends.setdefault(row.run, row)
    for row in ends.values():
        yield Event(
            row.ended,
            "",
            None,
            _APPROVED,
            ran_by=row.author,
            reason=row.run_reason,
            commit=row.commit,
            approver=row.approver,
            run=row.run,
            policy=row.policy,
            follows_git=True,
            tone=Tone.CHANGE,
        ).credit(row.commit_author)


def _describe_write(first: HistoryRow, row: HistoryRow, last: HistoryRow) -> Event:
    """Return the event of a row: of its first end that tried, the one that decided, and the last.

    A run that is resumed finds at its last end that the cluster already stores what it has sent.
    """
    mode, tone = Mode(row.mode), Tone.CHANGE
    what = _UNSENT.get(mode, "")
    if row.outcome == Status.ACCEPTED or (what == "" and last.outcome == Status.ALREADY):
        what = _WORDS[mode]
        if mode is Mode.APPLY and row.kind == Kind.DRIFTED:
            what = REPAIRED
        elif row.requested is None:
            what = "cleared" if mode is Mode.APPLY else f"{what}: cleared"
        if last.found_by not in {None, row.run}:
            what += ": found as sent"  # somebody may have set an equal value
    elif what == "":
        what, tone = f"{row.outcome}: not confirmed", Tone.REFUSAL
    return Event(
        # A later run recorded the end of a run that died, perhaps days after it had written.
        first.started if first.stopped == StageStatus.KILLED else first.ended,
        row.entity or "",
        row.key,
        what,
        first.actual,
        row.outcome in ATTEMPTED - {Status.STALE},
        row.requested,
        last.found,
        last.found_by,
        ran_by=row.author,
        reason=row.run_reason,
        commit=row.commit,
        commit_author=row.commit_author,
        approver=row.approver,
        run=row.run,
        follows_git=mode in {Mode.APPLY, Mode.FOUND},
        tone=tone,
    )


def list_changes(rows: Iterable[HistoryRow], holds: Iterable[Hold] = ()) -> tuple[Event, ...]:
    """Return what runs and people changed, in order.

    Writes, adoptions, releases, policies that were approved, and holds. A run whose clock was ahead
    is before the runs that began later.
    """
    rows = tuple(rows)
    events = [*_list_policies(rows), *_list_writes(rows), *_list_holds(holds)]
    runs = _place_runs(rows)

    def place(event: Event) -> tuple[str, float]:
        earlier, sequence = runs.get(event.run or "", (None, inf))
        return earlier or event.at, sequence

    return tuple(sorted(events, key=place))


def _place_runs(rows: Iterable[HistoryRow]) -> dict[str, tuple[str | None, int]]:
    """Return of each run its number, and an earlier time than it recorded if its clock was ahead.

    It was if a run with a larger number ended before it began; so it is in history_drifts.sql.
    """
    ends = {row.sequence: row for row in sorted(rows, key=_rank_row, reverse=True) if row.sequence}
    runs, latest = dict[str, tuple[str | None, int]](), _NEVER
    for sequence, row in sorted(ends.items(), reverse=True):
        runs.setdefault(row.run, (latest if row.started > latest else None, sequence))
        latest = min(latest, row.ended)
    return runs


def _list_holds(holds: Iterable[Hold]) -> Iterator[Event]:
    for hold in holds:
        what = "hold ended" if hold.is_release else f"held until {moment(iso_utc(hold.until))}"
        at, entity = iso_utc(hold.at), hold.who.text
        yield Event(at, entity, None, what, by=hold.by, ran_by=hold.by, reason=hold.reason)
