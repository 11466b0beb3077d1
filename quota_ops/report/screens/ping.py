"""The pings of a cluster and of a run store, as screens and as JSON."""

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Any

from msgspec.structs import asdict

from quota_ops.model.clusters.cluster_facts import Absent
from quota_ops.model.clusters.ping import BrokerPing, ClusterPing, Mode, Operation, Right, StorePing
from quota_ops.model.runs.verification import BACK_OR_GONE, BOOTSTRAP, ONLY_BOOTSTRAP
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.formats import duration, escape_text
from quota_ops.report.outline.layout import Cells, Line, Screen, Span, Table, Tone, line
from quota_ops.report.outline.sentences import (
    INCOMPLETE,
    describe_callback,
    describe_clock_lead,
    describe_needless_retirements,
    names_of,
)

_ZOOKEEPER = (
    "The cluster keeps its metadata in ZooKeeper: it accepts limits that KRaft rejects, and rounds "
    "the values that it stores. quota-ops is not tested with it."
)


def ping_screen(cluster: str, ping: ClusterPing) -> Screen:
    """Return the cluster, its brokers with their response times, the rights, and warnings."""
    response = sum(broker.error is None for broker in ping.brokers)
    brokers = len(ping.brokers) + len(ping.missed)
    whole = response == brokers
    mode = f"; {ping.mode}" if ping.mode else ""
    total = f"{response:,} of {counted(brokers, 'broker')} {plural(brokers, 'responds', 'respond')}"
    if ping.bootstrap:
        total = f"the bootstrap address {'responds' if whole else 'does not respond'}"
    return (
        (
            Span(cluster, Tone.STRONG),
            Span(f" ({ping.cluster_id}, as in cluster.yaml{mode})", Tone.CONTEXT),
            Span(f"      {total}", Tone.OK if whole else Tone.REFUSAL),
        ),
        line(),
        Table.of(
            ("  broker", "address", "Kafka", "response"),
            (*map(_broker, ping.brokers), *map(_absent, ping.absent)),
        ),
        line(),
        Table.of((f"  {ping.principal} is authorized to", ""), map(_right, ping.rights)),
        *_below(ping),
    )


def list_sentences(ping: ClusterPing) -> list[str]:
    """Return which operations work, without facts that need cluster.yaml."""
    total = len(ping.brokers) + len(ping.missed)
    response = sum(broker.error is None for broker in ping.brokers)
    granted = " and ".join(right.what for right in ping.rights if right.needed and right.granted)
    return [
        f"Connected to cluster {ping.cluster_id} as {ping.principal}.",
        f"{response:,} of {counted(total, 'broker')} {plural(response, 'responds', 'respond')}.",
        *(
            f"Broker {broker.facts.id} at {broker.facts.address}: {broker.error}."
            for broker in ping.brokers
            if broker.error
        ),
        *([f"Authorized to {granted}."] if granted else []),
        *(
            f"Unknown whether it is authorized to {right.what}: {right.error}."
            for right in ping.rights
            if right.needed and right.granted is None
        ),
        *(
            f"Not authorized to {right.what}: it needs {right.operation} on the resource Cluster. "
            f"An administrator grants it with: {right.grant}"
            for right in ping.missing
        ),
        *warnings(ping),
    ]


def _broker(broker: BrokerPing) -> Cells:
    facts = broker.facts
    response = (
        Span(broker.error, Tone.REFUSAL) if broker.error else Span("not queried", Tone.CONTEXT)
    )
    if broker.seconds is not None:
        response = Span(duration(broker.seconds), Tone.OK)
    name = "unknown" if facts.id == BOOTSTRAP else str(facts.id)
    return f"  {name}", facts.address, facts.version or "unknown", response


def _absent(broker: Absent) -> Cells:
    words, tone = broker.why, Tone.REFUSAL
    if broker.retired is not None:
        words += f"; retired in cluster.yaml: {escape_text(broker.retired)}"
        tone = Tone.CONTEXT
    cells = (f"  {broker.id}", broker.address or "unknown", "unknown")
    return *cells, Span(words, tone)


def _right(right: Right) -> Cells:
    if right.granted:
        words = Span("yes", Tone.OK)
    elif right.granted is None:
        words = Span(f"unknown: {right.error}", Tone.REFUSAL if right.needed else Tone.CONTEXT)
    elif right.needed:
        words = Span(f"no: it needs {right.operation} on the resource Cluster", Tone.REFUSAL)
    else:
        words = Span(f"no, without {right.operation}; only some findings need it", Tone.CONTEXT)
    return f"  {right.what}", words


def _below(ping: ClusterPing) -> Iterator[Line]:
    for warning in warnings(ping):
        yield from (line(), line(warning, Tone.CHANGE))
    for right in ping.missing:
        yield from (line(), line(f"An administrator grants {right.operation} with:", Tone.STRONG))
        yield line(f"    {right.grant}")


def warnings(ping: ClusterPing) -> list[str]:
    """Return why stored quotas may not apply, and what to do about unreachable brokers."""
    zookeeper = _ZOOKEEPER if ping.mode is Mode.ZOOKEEPER else ""
    partly = "" if ping.complete else INCOMPLETE
    missed = f"{names_of(ping.missed)} could not be queried. {BACK_OR_GONE}" if ping.missed else ""
    reach = _out_of_reach(ping.unreached)
    needless = describe_needless_retirements(ping.needless)
    words = (describe_callback(ping.facts), zookeeper, reach, missed, partly, *needless)
    return [sentence for sentence in words if sentence]


def _out_of_reach(brokers: tuple[int, ...]) -> str:
    if not brokers:
        return ""
    names = ", ".join(map(str, brokers))
    one = f"Broker {names} does not respond at the address that it advertises."
    more = f"Brokers {names} do not respond at the addresses that they advertise."
    return f"{plural(len(brokers), one, more)} {ONLY_BOOTSTRAP}"


def as_json(cluster: str, ping: ClusterPing) -> dict[str, Any]:
    """Return the ping as one object.

    cluster, cluster_id, principal, mode (KRaft, ZooKeeper, null unknown)
    absent     brokers of the cluster that no client is sent to: id, address, why, retired (the
               reason of cluster.yaml; null where it counts)
    complete   whether the cluster named all of its brokers
    brokers    id, address, version, callback_class, network_threads, io_threads, seconds, error
    bootstrap  whether cluster.yaml sets verify: bootstrap; only brokers[0] was queried then
    rights     what, operation, granted (true, false, null unknown), needed, error, grant (the
               command line)
    warnings   sentences
    """
    return {
        "cluster": cluster,
        "cluster_id": ping.cluster_id,
        "principal": ping.principal,
        "mode": ping.mode,
        "brokers": [
            asdict(broker.facts) | {"seconds": broker.seconds, "error": broker.error}
            for broker in ping.brokers
        ],
        "absent": [broker._asdict() for broker in ping.absent],
        "complete": ping.complete,
        "bootstrap": ping.bootstrap,
        "rights": [asdict(right) for right in ping.rights],
        "warnings": warnings(ping),
    }


_TONES = {True: Tone.OK, False: Tone.REFUSAL}
_UNSAFE = (
    "This store must not be written: two runs could take the same number. quota-ops refuses to "
    "write here until a ping finds one winner of each number."
)


def store_ping_screen(ping: StorePing) -> Screen:
    """Return the address, each operation with its times, and the winners of the race."""
    return (
        (Span(ping.address, Tone.STRONG), *_summary(ping)),
        line(),
        Table.of(
            ("  operation", "authorized", "median", "highest"), map(_operation, ping.operations)
        ),
        *_race(ping),
        *_store_below(ping),
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


def _operation(operation: Operation) -> Cells:
    name = f"  {operation.name}"
    if operation.is_authorized is None:
        return name, Span("not tried", Tone.CONTEXT), "", ""
    if operation.error is not None:
        return name, Span(f"no: {operation.error}", Tone.REFUSAL), "", ""
    times = duration(median(operation.seconds)), duration(max(operation.seconds))
    return name, Span("yes", Tone.OK), *times


def _race(ping: StorePing) -> Iterator[Line | Table]:
    if not ping.winners:
        return
    rows = (
        (Span(f"  {winners} of {ping.racers}", _TONES[winners == 1]), f"{numbers}")
        for winners, numbers in sorted(Counter(ping.winners).items())
    )
    yield line()
    yield Table.of(("  writers that won", "numbers"), rows)


def _store_below(ping: StorePing) -> Iterator[Line]:
    if ping.is_safe is False:
        yield from (line(), line(_UNSAFE, Tone.REFUSAL))
    empty = "This store is empty or does not exist: no run has used it." if ping.is_empty else ""
    left = f"Test files were not deleted: {ping.left}" if ping.left else ""
    for words in filter(None, (describe_clock_lead(ping.clock_lead), empty, left)):
        yield from (line(), line(words, Tone.CHANGE))


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
