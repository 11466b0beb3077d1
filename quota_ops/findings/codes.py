"""Every finding that there is: its code, and all that people are told about it.

The command, the documentation and the JSON Schemas are made from this table.
"""

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How sure it is that somebody meant something else."""

    WARNING = "warning"
    """A limit does not do what its reader thinks."""
    NOTICE = "notice"
    """It works, and misleads."""


class DecidedBy(StrEnum):
    """What must be known to tell whether there is a finding."""

    FILES = "the files"
    QUOTAS = "the files, and in a plan also what else the cluster holds"
    BROKERS = "a plan, from what the brokers tell of themselves"


class Code(NamedTuple):
    """A finding: a title, what it means, why it hurts, files that give rise to it, a remedy."""

    code: str
    severity: Severity
    decided_by: DecidedBy
    title: str
    means: str
    hurts: str
    example: str
    remedy: str

    @property
    def silenceable(self) -> bool:
        """Whether an entry of `silence` may name it."""
        return self.code != IDLE_SILENCE


OWN_PERCENTAGE = 10.0
"""Percent of a thread that describing and altering some thousand quotas takes in a window."""

IDLE_SILENCE, PREFIXED_USER, DEFAULT_AS_TEXT, NOT_NFC = "QO100", "QO101", "QO102", "QO103"
MIXED_UNITS, SHADOWED, NAMELESS_ONLY, STARVING = "QO104", "QO105", "QO106", "QO107"
LOOPBACK, NOWHERE, AROUND_NAME, FRACTION = "QO108", "QO109", "QO110", "QO111"
BEYOND_THREADS, UNKNOWN_USER, OURSELVES = "QO201", "QO202", "QO203"

_WARNING, _NOTICE = Severity.WARNING, Severity.NOTICE
_FILES, _QUOTAS, _BROKERS = DecidedBy.FILES, DecidedBy.QUOTAS, DecidedBy.BROKERS

_ALL = (
    Code(
        IDLE_SILENCE,
        _NOTICE,
        _FILES,
        "a silence without a finding",
        "A finding is silenced where nothing gives rise to it, or no longer.",
        "The entry would hide the same mistake when somebody makes it later.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB}
  silence: [{finding: QO101, reason: it was so once}]""",
        "Remove the entry.",
    ),
    Code(
        PREFIXED_USER,
        _WARNING,
        _FILES,
        "a user's name with User: before it",
        "Kafka writes principals as User:alice in ACLs, and looks quotas up by the name alone.",
        "The broker stores the quota, but it applies to no client: the user is not limited.",
        """\
- user: "User:alice"
  limits: {producer_byte_rate: 10 MiB}""",
        "Write the name without User:.",
    ),
    Code(
        DEFAULT_AS_TEXT,
        _WARNING,
        _FILES,
        "default, <default> or * as a name",
        "Kafka's tools print a default as <default>, and its ACLs know User:*; as the name of a "
        "quota each is a name like any other, as default is.",
        "The limit holds for a client or user of this very name, and for nobody else.",
        """\
- client-id: "<default>"
  limits: {consumer_byte_rate: 2 MiB}""",
        "Write {default: true}; silence it if a client or user has this very name.",
    ),
    Code(
        NOT_NFC,
        _WARNING,
        _FILES,
        "a name that is not in Unicode's usual form (NFC)",
        "A letter such as é can be written as one character or as two; both look the same.",
        "Kafka compares bytes: the quota does not apply to a client that writes the other form.",
        """\
- user: "Rene\\u0301"
  limits: {producer_byte_rate: 10 MiB}""",
        "Write the name in NFC, as keyboards do; silence it if clients do log in that way.",
    ),
    Code(
        MIXED_UNITS,
        _NOTICE,
        _FILES,
        "MB beside MiB in one cluster",
        "MB counts in thousands and MiB in 1,024s; the cluster's files use both.",
        "5 MB looks like half of 10 MiB and is not; at GB and GiB the gap is 7 %.",
        """\
- user: alice
  limits: {producer_byte_rate: 10 MiB, consumer_byte_rate: 20 MiB}
- user: bob
  limits: {producer_byte_rate: 5 MB}""",
        "Use one family, the one that most of the cluster's limits are in.",
    ),
    Code(
        SHADOWED,
        _WARNING,
        _QUOTAS,
        "a limit that never holds",
        "Brokers look for each key's limit at eight levels, and the first that has one holds; every"
        " client that this limit could reach has one at a level before it.",
        "The limit does nothing, whatever its number.",
        """\
- user: {default: true}
  limits: {producer_byte_rate: 10 MiB}
- client-id: search-indexer
  limits: {producer_byte_rate: 50 MiB}""",
        "Remove it, or name the user beside the client id, which is looked for first.",
    ),
    Code(
        NAMELESS_ONLY,
        _NOTICE,
        _QUOTAS,
        "a limit for clients without a client id only",
        "A limit for each client id of the same users comes first, and only clients that send no"
        " client id escape that one. Hardly any client sends none.",
        "The number seldom applies to a client of this user.",
        """\
- user: alice
  limits: {producer_byte_rate: 50 MiB}
- user: alice
  client-id: {default: true}
  limits: {producer_byte_rate: 10 MiB}""",
        "Remove one of the two; silence this one if clients without a client id are meant.",
    ),
    Code(
        STARVING,
        _WARNING,
        _FILES,
        "a limit that all but stops a busy client",
        "The rate is below one batch of a producer (16 KiB) a second, or the percentage below 0.1.",
        "A busy client spends most of its time waiting; mostly a unit was forgotten.",
        """\
- user: alice
  limits: {producer_byte_rate: 10}""",
        "Write the unit, such as 10 MiB; silence it where somebody is to be stopped.",
    ),
    Code(
        LOOPBACK,
        _WARNING,
        _FILES,
        "a connection limit of the broker's own machine",
        "The address is a loopback address: only programs beside the broker connect from it.",
        "It limits probes, exporters and tools there, and never a client of the network.",
        "- ip: 127.0.0.1\n  limits: {connection_creation_rate: 10}",
        "Write the address that the broker sees clients come from.",
    ),
    Code(
        NOWHERE,
        _WARNING,
        _FILES,
        "an address that no connection comes from",
        "0.0.0.0 and :: stand for every address of a listener, and are no client's own.",
        "The broker stores the limit, but it applies to no connection.",
        "- ip: 0.0.0.0\n  limits: {connection_creation_rate: 10}",
        "For each address without a limit of its own write ip: {default: true}.",
    ),
    Code(
        AROUND_NAME,
        _WARNING,
        _FILES,
        "a blank or a curly quote at an end of a name",
        "Only straight quotes are quotes to YAML, and all that stands between them is the name.",
        "Kafka compares bytes: the quota applies to no client whose name is without them.",
        '- user: " alice"\n  limits: {producer_byte_rate: 10 MiB}',
        "Write the name alone; silence it if a client or user does have such a name.",
    ),
    Code(
        FRACTION,
        _WARNING,
        _FILES,
        "a percentage below 1",
        "request_percentage is in percent: 50 is half of one thread, 0.5 half a percent of it.",
        "The limit is a hundredth of the one that was probably meant.",
        "- user: alice\n  limits: {request_percentage: 0.5}",
        "Write percent, such as 50; silence it where so little is meant.",
    ),
    Code(
        BEYOND_THREADS,
        _WARNING,
        _BROKERS,
        "a percentage above what a broker's threads can give",
        "100 is one thread: a broker has num.network.threads + num.io.threads of them, mostly 11,"
        " and nobody uses more than all.",
        "The limit never holds anybody back.",
        """\
- user: alice
  limits: {request_percentage: 5000}""",
        "Choose a share of the threads, or write unlimited if nobody is to be held back.",
    ),
    Code(
        UNKNOWN_USER,
        _WARNING,
        _BROKERS,
        "a user whom the cluster does not know",
        "The cluster has SCRAM users and ACLs, and neither has this name; an ACL of everybody"
        " (User:*) names nobody. Where the cluster has no SCRAM users or no ACLs, or where the"
        " permission Describe is missing, this is not looked for.",
        "Mostly a typing error, or somebody who has left: the limit holds nobody.",
        """\
- user: alcie
  limits: {producer_byte_rate: 10 MiB}""",
        "Correct the name or remove the quota; silence it for a user who logs in another way and"
        " has no ACL.",
    ),
    Code(
        OURSELVES,
        _WARNING,
        _BROKERS,
        "a percentage that would slow quota-ops itself down",
        "The request_percentage that holds for the user and client id of quota-ops is below 10.",
        "Brokers hold its requests back, each by up to a second: a repair takes long when it"
        " matters most.",
        """\
- user: {default: true}
  limits: {request_percentage: 5}""",
        "Give the user of quota-ops a quota of its own, with request_percentage: unlimited.",
    ),
)

CODES = {one.code: one for one in _ALL}
"""Every finding by its code, in order."""
SILENCEABLE = tuple(code for code, one in CODES.items() if one.silenceable)
