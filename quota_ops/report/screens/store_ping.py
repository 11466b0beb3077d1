"""The result of a ping of a run store as a screen and as JSON."""

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any

from quota_ops.model.clusters.ping import Operation, StorePing
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import duration
from quota_ops.report.outline.layout import Line, Row, Screen, Span, Table, Tone, line
from quota_ops.report.outline.sentences import describe_clock_lead

_UNSAFE = (
    "This store must not be written: two runs could take the same number. quota-ops refuses to "
    "write here until a ping finds one winner of each number."
)


def store_ping_screen(ping: StorePing) -> Screen:
    """Return the address, each operation with its times, and the winners of the race."""
    return (
        (Span(ping.address, Tone.STRONG), *_summary(ping)),
        line(),
        Table(
            ("  operation", "authorized", "median", "highest"),
            tuple(map(_operation, ping.operations)),
        ),
        *_race(ping),
        *_below(ping),
    )


def _summary(ping: StorePing) -> Line:
    if ping.is_safe is None:
        return (Span("      not tested for races: files cannot be created", Tone.CHANGE),)
    if ping.is_safe:
        return (Span("      one winner of each number", Tone.OK),)
    wrong = sum(winner != 1 for winner in ping.winners)
    numbers = counted(len(ping.winners), "number")
    most = "more than one winner" if max(ping.winners) > 1 else "no winner"
    return (Span(f"      {wrong:,} of {numbers} had {most}", Tone.REFUSAL),)


def _operation(operation: Operation) -> Row:
    name = Span(f"  {operation.name}")
    if operation.is_authorized is None:
        return Row((name, Span("not tried", Tone.CONTEXT), Span(""), Span("")))
    if operation.error is not None:
        return Row((name, Span(f"no: {operation.error}", Tone.REFUSAL), Span(""), Span("")))
    times = (duration(median(operation.seconds)), duration(max(operation.seconds)))
    return Row((name, Span("yes", Tone.OK), *map(Span, times)))


def _race(ping: StorePing) -> Iterator[Line | Table]:
    if not ping.winners:
        return
    found = sorted(Counter(ping.winners).items())
    rows = (
        Row(
            (
                Span(f"  {winners} of {ping.racers}", Tone.OK if winners == 1 else Tone.REFUSAL),
                Span(f"{numbers}"),
            )
        )
        for winners, numbers in found
    )
    yield line()
    yield Table(("  writers that won", "numbers"), tuple(rows))


def _below(ping: StorePing) -> Iterator[Line]:
    if ping.is_safe is False:
        yield line()
        yield line(_UNSAFE, Tone.REFUSAL)
    if clock := describe_clock_lead(ping.clock_lead):
        yield line()
        yield line(clock, Tone.CHANGE)
    if ping.is_empty:
        yield line()
        yield line("This store is empty or does not exist: no run has used it.", Tone.CHANGE)
    if ping.left:
        yield line()
        yield line(f"Test files were not deleted: {ping.left}", Tone.CHANGE)


def store_ping_json(ping: StorePing) -> dict[str, Any]:
    """Return the ping as one object.

    address     of the run store
    safe        whether each number had exactly one winner; null if there was no race
    racers      how many writers tried to create each number
    winners     how many of them succeeded, for each number
    operations  operation, authorized (true, false, null not tried), median and highest (seconds),
                error
    clock_lead  how many seconds this machine's clock is ahead of the store's; 0 if they agree
    empty       whether nothing was stored there before the test
    left        the folder of test files that could not be deleted; null if there are none
    """
    return {
        "address": ping.address,
        "safe": ping.is_safe,
        "racers": ping.racers,
        "winners": list(ping.winners),
        "operations": [
            {
                "operation": operation.name,
                "authorized": operation.is_authorized,
                "median": median(operation.seconds) if operation.seconds else None,
                "highest": max(operation.seconds, default=None),
                "error": operation.error,
            }
            for operation in ping.operations
        ],
        "clock_lead": ping.clock_lead,
        "empty": ping.is_empty,
        "left": ping.left,
    }
