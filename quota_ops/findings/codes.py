"""The table of all findings: their codes and everything that is shown about them.

The command, the documentation and the JSON Schemas are made from it. A new finding needs a rule: of
one entity in `entity_rules`, called for suspicious texts; of a limit that applies to nobody in
`shadowing`; of sums in `shares`; of what the cluster stores in `cluster_rules`; of anything else in
the files in `desired/findings.py`, which calls the rules of entities and finds their places.
"""

from enum import StrEnum
from typing import NamedTuple

from quota_ops.model.finding import Finding, Location
from quota_ops.model.quotas.quota import STARVING_BYTES, STARVING_PERCENTAGE

IDLE_SILENCE = "QO100"
"""The code of a silence without a finding, which cannot be silenced itself."""


class Severity(StrEnum):
    """How serious a finding is."""

    WARNING = "warning"
    """A limit does not do what its reader expects."""
    NOTICE = "notice"
    """A limit works, but misleads."""


class DecidedBy(StrEnum):
    """The input that a finding depends on."""

    FILES = "the files"
    TIME = "the files and the time"
    BROKERS = "a plan, from what brokers report"


class Code(NamedTuple):
    """A finding: its title, meaning and consequence, a file that triggers it, and a remedy."""

    code: str
    title: str
    means: str
    hurts: str
    example: str
    remedy: str
    severity: Severity = Severity.WARNING
    decided_by: DecidedBy = DecidedBy.FILES


OWN_PERCENTAGE = 10.0
"""The percentage of a thread that describing and altering thousands of quotas takes."""

SOON_DAYS = 3
"""Within how many days a temporary limit ends for QO114."""

PREFIXED_USER, DEFAULT_AS_TEXT, NOT_NFC = "QO101", "QO102", "QO103"
MIXED_UNITS, SHADOWED, NAMELESS_ONLY, STARVING = "QO104", "QO105", "QO106", "QO107"
LOOPBACK, NOWHERE, AROUND_NAME, FRACTION = "QO108", "QO109", "QO110", "QO111"
TWIN, SLIP, ENDS_SOON, ENDED, UNUSED_PROFILE = "QO112", "QO113", "QO114", "QO115", "QO116"
PATTERN, OVERCOMMITTED, IDLE_CEILING, ABOVE_CEILING = "QO117", "QO118", "QO119", "QO120"
OTHER_TYPE, NOBODY_APPROVES, MISSPELLED = "QO121", "QO122", "QO123"
BEYOND_THREADS, UNKNOWN_USER, OWN_LIMIT, UNCHECKED_USERS = "QO201", "QO202", "QO203", "QO204"
UNPROTECTED = "QO205"

_ALL = (
    Code(
        IDLE_SILENCE,
        "a silence without a finding",
        "No finding matches the silence.",
        "If somebody makes the same mistake later, the entry hides it.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB}
  silence: [{finding: QO101, reason: it was so once}]""",
        "Remove the entry.",
        severity=Severity.NOTICE,
    ),
    Code(
        PREFIXED_USER,
        "a user name that starts with User:",
        "Kafka writes principals as User:alice in ACLs, but looks up quotas by the name alone.",
        "The broker stores the quota, but it applies to no client: the user is not limited.",
        """\
- user: "User:alice"
  limits: {producer_byte_rate: 10 MiB}""",
        "Write the name without User:.",
    ),
    Code(
        DEFAULT_AS_TEXT,
        "default, any, all, <default>, * or {default: true} in quotes as a name",
        "Kafka's tools print a default as <default>, and ACLs use User:* for every user. In a "
        "quota, these are ordinary names: default, any, all, <default>, * and '{default: true}'.",
        "The limit applies only to a client or user with exactly this name.",
        """\
- client-id: "<default>"
  limits: {consumer_byte_rate: 2 MiB}""",
        "Write {default: true}. Silence the finding if a client or user really has this name.",
    ),
    Code(
        NOT_NFC,
        "a name that looks like another: letters in an unusual form, or of two alphabets",
        "A letter such as é can be written as one character or as two (NFC has one); both look "
        "the same. So do the Latin, the Cyrillic and the fullwidth a.",
        "Kafka compares bytes: the quota does not apply to a client that writes the other form.",
        """\
- user: "Rene\\u0301"
  limits: {producer_byte_rate: 10 MiB}""",
        "Write the name as keyboards do. Silence the finding if clients use the other form.",
    ),
    Code(
        MIXED_UNITS,
        "MB and MiB in one cluster",
        "MB is based on 1,000 and MiB on 1,024; the cluster's files use both.",
        "5 MB looks like half of 10 MiB but is not. Between GB and GiB the difference is 7 %.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB, consumer_byte_rate: 20 MiB}
- user: bob
  limits: {producer_byte_rate: 5 MB}""",
        "Use one family of units, the one that most limits of the cluster use.",
        severity=Severity.NOTICE,
    ),
    Code(
        SHADOWED,
        "a limit that never applies",
        "For each key, brokers look for a limit at eight levels, and the first one found applies."
        " Every client that this limit could reach has a limit at an earlier level.",
        "The limit has no effect, whatever its value.",
        """\
- user: {default: true}
  limits: {producer_byte_rate: 10 MiB}
- client-id: search-indexer
  limits: {producer_byte_rate: 50 MiB}""",
        "Remove it, or add the user to the client id: that level comes first.",
    ),
    Code(
        NAMELESS_ONLY,
        "a limit that applies only to clients without a client id",
        "A limit for every client id of the same users comes first. It covers all clients that send"
        " a client id, and almost every client sends one.",
        "The limit rarely applies to a client of this user.",
        """\
- user: alice
  limits: {producer_byte_rate: 50 MiB}
- user: alice
  client-id: {default: true}
  limits: {producer_byte_rate: 10 MiB}""",
        "Remove one of the two. Silence the finding if you mean clients without a client id.",
        severity=Severity.NOTICE,
    ),
    Code(
        STARVING,
        "a limit that all but stops a busy client",
        f"The rate is below one producer batch ({STARVING_BYTES / 1024:g} KiB) per second, or the "
        f"percentage is below {STARVING_PERCENTAGE:g}.",
        "A busy client spends most of its time waiting. Usually the unit was forgotten.",
        """\
- user: alice
  limits: {producer_byte_rate: 10}""",
        "Write the unit, for example 10 MiB. Silence the finding if you want to stop the client.",
    ),
    Code(
        LOOPBACK,
        "a connection limit for the broker's own machine",
        "The address is a loopback address: only programs on the broker's machine use it.",
        "It limits probes, exporters and tools on that machine, but no client on the network.",
        "- ip: 127.0.0.1\n  limits: {connection_creation_rate: 10}",
        "Write the address from which clients connect, as the broker sees it.",
    ),
    Code(
        NOWHERE,
        "an address that no connection comes from",
        "0.0.0.0 and :: mean every address of a listener; no client has them.",
        "The broker stores the limit, but it applies to no connection.",
        "- ip: 0.0.0.0\n  limits: {connection_creation_rate: 10}",
        "To limit every address without its own quota, write ip: {default: true}.",
    ),
    Code(
        AROUND_NAME,
        "a space or a curly quote at either end of a name, or an invisible character in it",
        "Only straight quotes are quotes in YAML, and everything between them belongs to the name. "
        "In double quotes, \\n is a line break.",
        "Kafka compares bytes: the quota does not apply to a client whose name lacks them.",
        '- user: " alice"\n  limits: {producer_byte_rate: 10 MiB}',
        "Write only the name. Silence the finding if a client or user really has this name.",
    ),
    Code(
        FRACTION,
        "a percentage below 1",
        "request_percentage is in percent: 50 is half of one thread, 0.5 is half a percent of it.",
        "The limit is probably a hundredth of the intended one.",
        "- user: alice\n  limits: {request_percentage: 0.5}",
        "Write percent, for example 50. Silence the finding if the low limit is intended.",
    ),
    Code(
        TWIN,
        "two names that differ only in case",
        "Kafka compares names byte by byte, so Alice and alice are two users.",
        "One of the two quotas usually applies to no client.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB}
- user: Alice
  limits: {consumer_byte_rate: 10 MiB}""",
        "Keep the name that clients use. Silence the finding if both exist.",
    ),
    Code(
        SLIP,
        "a byte rate that looks like a slip of the unit",
        "The number is above 1,024 in MB or MiB (2000 MiB), or the same quota has "
        "the same number in another unit (20 MiB and 20 GiB).",
        "A limit that is a thousand times too high does not limit; one that is too low stops.",
        """\
- user: alice
  limits: {producer_byte_rate: 20 MiB, consumer_byte_rate: 20 GiB}""",
        "Correct the number or the unit, or write the value in the larger unit.",
        severity=Severity.NOTICE,
    ),
    Code(
        ENDS_SOON,
        f"a temporary limit that ends within {SOON_DAYS} days",
        "The time in until is near; the first run after it restores the standing limit, or removes"
        " the quota.",
        "A client that still needs the limit is slowed down from then on.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB}
  overrides: [{until: 2026-12-01T18:00:00Z, limits: {producer_byte_rate: 50 MiB}}]""",
        "If it is needed for longer, write a later time in until.",
        severity=Severity.NOTICE,
        decided_by=DecidedBy.TIME,
    ),
    Code(
        ENDED,
        "a temporary limit that has ended",
        "The time in until has passed.",
        "The entry does nothing, and its reader may believe that it does.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB}
  overrides: [{until: 2026-11-01T18:00:00Z, limits: {producer_byte_rate: 50 MiB}}]""",
        "Delete the entry, or write a later time in until.",
        severity=Severity.NOTICE,
        decided_by=DecidedBy.TIME,
    ),
    Code(
        UNUSED_PROFILE,
        "a profile that no quota uses",
        "No quota and no other profile refers to it.",
        "It limits nobody; perhaps a quota that was meant to use it has limits of its own.",
        """\
# cluster.yaml
profiles: {gold: {producer_byte_rate: 50 MiB}}""",
        "Use it, or delete it.",
        severity=Severity.NOTICE,
    ),
    Code(
        OVERCOMMITTED,
        "more promised than a broker can serve",
        "The limits of one key are together more than capacity in cluster.yaml times its factor.",
        "If all clients use their limits at the same time, every one of them gets less.",
        """\
# cluster.yaml
capacity: {producer_byte_rate: 10 MiB}
# team.yaml
- {user: alice, limits: {producer_byte_rate: 8 MiB}}
- {user: bob, limits: {producer_byte_rate: 8 MiB}}""",
        "Lower limits, add brokers, or declare in factor how far promises may exceed the capacity.",
        severity=Severity.NOTICE,
    ),
    Code(
        PATTERN,
        "a pattern, a list or a DN with spaces as a name",
        "Kafka compares names byte by byte: its quotas have no patterns, user: u3, u4 is one "
        "name, and names that brokers take from certificates have no space after a comma "
        "(CN=app,O=example).",
        "The limit applies only to a client or user with exactly this name, which probably nobody "
        "has.",
        """\
- user: svc-*
  limits: {producer_byte_rate: 10 MiB}""",
        "Write an entry for each name. Silence the finding if a client or user really has this "
        "name.",
    ),
    Code(
        IDLE_CEILING,
        "a ceiling of an owner without quotas",
        "An entry of ceilings in cluster.yaml lists an owner that no file of the cluster has.",
        "If the name is misspelled, the owner who is meant may declare any limit.",
        """\
# cluster.yaml
ceilings: {taem: {producer_byte_rate: 200 MiB}}
# team.yaml
- {user: alice, limits: {producer_byte_rate: 300 MiB}}""",
        "Correct the name. Silence the finding for an owner who will come.",
    ),
    Code(
        ABOVE_CEILING,
        "a limit above the ceiling of its owner",
        "A limit, or all limits of an owner together, are above ceilings in cluster.yaml.",
        "The guard above_ceiling blocks the plan that sets the limit until somebody approves it.",
        """\
# cluster.yaml
ceilings: {team: {producer_byte_rate: 200 MiB}}
# team.yaml
- {user: alice, limits: {producer_byte_rate: 300 MiB}}""",
        "Lower the limit, or agree on a higher ceiling with the owner of cluster.yaml.",
    ),
    Code(
        OTHER_TYPE,
        "a user and a client id with the same name",
        "A user is whom a client authenticates as, a client id is what it calls itself. Two "
        "quotas, or a quota and owners, have the same name as different types.",
        "If the type is a mistake, the limit applies to no client.",
        """\
- client-id: search-indexer
  limits: {producer_byte_rate: 10 MiB}
- user: search-indexer
  limits: {consumer_byte_rate: 10 MiB}""",
        "Write the type that is meant. Silence the finding if both exist.",
        severity=Severity.NOTICE,
    ),
    Code(
        NOBODY_APPROVES,
        "code owners as `quota-ops init` wrote them",
        "code_owners in cluster.yaml still has the placeholder @OWNER.",
        "The code host knows no such team, so nobody has to approve changes of these files.",
        """\
# cluster.yaml
owners: {team: {files: [team.yaml], code_owners: ["@OWNER/my-team"]}}
# team.yaml
- {user: alice, limits: {producer_byte_rate: 10 MiB}}""",
        "Write the team that approves, here and in CODEOWNERS.",
    ),
    Code(
        MISSPELLED,
        "a name that differs from another one by a letter, the order of letters, or a separator",
        "The other name is declared, or listed under owners; for an `alter`, it has a quota. For "
        "names with digits, only `-`, `_` and `.` count.",
        "If it is a slip, the limit applies to no client.",
        """\
- user: indexer
  limits: {producer_byte_rate: 10 MiB}
- user: indexr
  limits: {producer_byte_rate: 10 MiB}""",
        "Correct the name. Silence the finding if both exist.",
        severity=Severity.NOTICE,
    ),
    Code(
        BEYOND_THREADS,
        "a percentage above what a broker's threads can give",
        "100 is one thread. A broker has num.network.threads + num.io.threads threads, usually 11.",
        "No client can use that much, so the limit has no effect.",
        """\
- user: alice
  limits: {request_percentage: 5000}""",
        "Choose a share of the threads, or write unlimited if the client needs no limit.",
        decided_by=DecidedBy.BROKERS,
    ),
    Code(
        UNKNOWN_USER,
        "a user that the cluster does not know",
        "The cluster has SCRAM users and ACLs, but none with this name; an ACL for everyone "
        "(User:*) does not count. This is not checked if the cluster has no SCRAM users or no ACLs,"
        " or does not authorize quota-ops to list them (QO204).",
        "Usually a typo, the name of a client id, a user of another cluster, or a user that no "
        "longer exists: the limit applies to no client.",
        """\
- user: alcie
  limits: {producer_byte_rate: 10 MiB}""",
        "Correct the name or remove the quota. Silence the finding for a user that authenticates in"
        " another way and has no ACL.",
        decided_by=DecidedBy.BROKERS,
    ),
    Code(
        OWN_LIMIT,
        "a percentage that would slow quota-ops itself down",
        "The request_percentage that applies to the user and client id of quota-ops is below 10.",
        "Brokers then delay each of its requests by up to a second, so an urgent repair is slow.",
        """\
- user: {default: true}
  limits: {request_percentage: 5}""",
        "Set a separate quota for the user of quota-ops, with request_percentage: unlimited.",
        decided_by=DecidedBy.BROKERS,
    ),
    Code(
        UNCHECKED_USERS,
        "users that quota-ops is not authorized to list",
        "The user of quota-ops lacks Describe on the resource Cluster, to list users and ACLs.",
        "QO202 is not checked: a typo in the name of a user stays unnoticed.",
        "- {user: alice, limits: {producer_byte_rate: 10 MiB}}",
        "Grant Describe, which only allows reading, or silence the finding in cluster.yaml.",
        severity=Severity.NOTICE,
        decided_by=DecidedBy.BROKERS,
    ),
    Code(
        UNPROTECTED,
        "protected users without the user of quota-ops",
        "protect in cluster.yaml lists users, but not the one that quota-ops authenticates as.",
        "A pull request may limit quota-ops itself, and slow down an urgent repair.",
        """\
# cluster.yaml
protect: [{user: quota-ops}]
# team.yaml
- {user: alice, limits: {producer_byte_rate: 10 MiB}}""",
        "Add the user under protect, or silence the finding in cluster.yaml.",
        severity=Severity.NOTICE,
        decided_by=DecidedBy.BROKERS,
    ),
)

CODES = {code.code: code for code in _ALL}
"""Every finding by its code, in order."""
SILENCEABLE = tuple(name for name in CODES if name != IDLE_SILENCE)
"""The codes that an entry of `silence` may name."""


def make_finding(
    code: str,
    message: str,
    remedy: str = "",
    *,
    entity: str | None = None,
    key: str | None = None,
    place: Location | None = None,
    subject: str = "",
) -> Finding:
    """Return a finding, with the usual remedy of its code unless it has its own."""
    remedy = remedy or CODES[code].remedy
    return Finding(code, entity, key, message, remedy, place, subject=subject)
