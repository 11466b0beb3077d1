"""The mappings that people write: their fields, what those mean, and an example of each.

The reader and the JSON Schemas both work from these tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quota_ops.model.entity import CLIENT_ID, IP, USER
from quota_ops.model.guards import SHARE_COUNTS_FROM
from quota_ops.model.quota import QUOTA_KEYS
from quota_ops.model.text import counted

DEFAULT = "default"
ANY = "any"


class Field(NamedTuple):
    """A field: what it means, and an example of its value as YAML."""

    description: str
    example: str


@dataclass(frozen=True)
class Shape:
    """A mapping: what it and its names are called, its fields, and which must be there."""

    title: str
    noun: str
    fields: Mapping[str, Field]
    required: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()

    @property
    def takes(self) -> str:
        """The fields, as a sentence that follows what is wrong."""
        return f"Known here: {', '.join(self.fields)}."


QUOTAS_FILE = Shape(
    "A quotas file",
    "a field of a quotas file",
    {
        "owner": Field("The team that answers for these quotas; reports name it.", "your-team"),
        "quotas": Field(
            "The quotas: each says for whom, and which limits.",
            "[{user: alice, limits: {producer_byte_rate: 10 MiB}}]",
        ),
    },
    required=("owner", "quotas"),
    reserved=frozenset({"profile", "budget"}),
)

QUOTA = Shape(
    "A quota",
    "a field of a quota",
    {
        USER: Field(
            "The user, as Kafka authenticates it, without 'User:'; {default: true} is every user"
            " that has no quota of its own.",
            "alice",
        ),
        CLIENT_ID: Field(
            "The client.id that a program gives itself; with user, that user's clients of this"
            " id; {default: true} is every client id that has no quota of its own.",
            "billing-app",
        ),
        IP: Field(
            "The address that connections come from, IPv4 or IPv6 in its shortest form; never"
            " with user or client-id; {default: true} is every address without one of its own.",
            "10.20.0.7",
        ),
        "limits": Field(
            "The limits, each a number in the key's unit, or unlimited to exempt from a default.",
            "{producer_byte_rate: 10 MiB}",
        ),
        "reason": Field("Why, for whoever reads the plan or the report.", "card settlement"),
        "silence": Field(
            "Findings that are intended for this entity, each with a reason.",
            "[{finding: QO104, reason: the till counts in MB}]",
        ),
    },
    required=("limits",),
    reserved=frozenset({"profile", "budget", "until"}),
)

LIMITS = Shape(
    "limits",
    "a quota key",
    {
        key.name: Field(
            f"{key.limits.capitalize()}, in bytes per second; units up to GiB, or unlimited.",
            "10 MiB",
        )
        if key.unit == "bytes/s"
        else Field(f"{key.limits.capitalize()}, in {key.unit}, or unlimited.", "50")
        for key in QUOTA_KEYS.values()
    },
)

CLUSTER_FILE = Shape(
    "cluster.yaml",
    "a field of cluster.yaml",
    {
        "cluster_id": Field(
            "Kafka's own id of the cluster: no other cluster is ever written.",
            "MkU3OEVBNTcwNTJENDM2Qg",
        ),
        "connection": Field(
            "The name of a connection; its hosts and secrets stay outside Git.", "demo"
        ),
        "schedule": Field(
            "When Airflow reconciles the cluster, as cron writes it (UTC); without it, only when"
            " somebody triggers it.",
            '"*/30 * * * *"',
        ),
        "scope": Field(
            "Which entities this folder may declare; without it, all of them.",
            "[{user: any}, {user: any, client-id: any}]",
        ),
        "protect": Field(
            "Entities that are never set and never cleared, as the cluster spells them.",
            "[{user: kafka-operator}]",
        ),
        "drift": Field("What a plan does with a row that somebody changed outside Git.", "repair"),
        "approval": Field(
            "Which plans wait for a person's word: never, on_breach (of a guard) or always.",
            "on_breach",
        ),
        "approval_valid_for": Field("How long an approval or an override counts.", "7d"),
        "verify": Field(
            "Whom runs ask and read back from: every_broker, or bootstrap where only the bootstrap"
            " address is in reach, as over a private link.",
            "every_broker",
        ),
        "retired_brokers": Field(
            "Brokers that are still registered and will not come back, each with a reason: no run"
            " fails because of them.",
            "[{id: 3, reason: scaled down to two brokers}]",
        ),
        "clear_unmanaged": Field(
            "Whether quotas in scope that Git does not know are cleared, after one verified run.",
            "false",
        ),
        "paused": Field(
            "Why nothing is written for now; without it, runs write. Reports go on.",
            "the brokers are being moved",
        ),
        "freeze": Field(
            "Windows in which nothing is written. Reports go on.",
            '[{cron: "0 18 * * fri", zone: Europe/Berlin, duration: 62h, reason: the weekend}]',
        ),
        "guards": Field("The numbers beyond which a guard blocks a plan.", "{removals: 20}"),
        "memory": Field(
            "How long the ledger remembers what is over, in case it comes back.",
            "{late_writes: 24h}",
        ),
        "silence": Field(
            "Findings that nobody wants to hear of on the whole cluster, each with a reason.",
            "[{finding: QO202, reason: all our users log in by certificate}]",
        ),
    },
    required=("cluster_id", "connection"),
    reserved=frozenset({"ledger", "profile", "budget"}),
)

RETIRED_BROKER = Shape(
    "An entry of retired_brokers",
    "a field of an entry of retired_brokers",
    {
        "id": Field("The broker's node.id.", "3"),
        "reason": Field("Why it will not come back.", "scaled down to two brokers"),
    },
    required=("id", "reason"),
)

FREEZE = Shape(
    "An entry of freeze",
    "a field of an entry of freeze",
    {
        "cron": Field("When it begins: five cron fields.", '"0 18 * * fri"'),
        "zone": Field("The time zone of that, by its name.", "Europe/Berlin"),
        "duration": Field("How long it lasts, whatever the clocks do meanwhile.", "62h"),
        "reason": Field("Why, for whoever meets it.", "no changes over the weekend"),
    },
    required=("cron", "zone", "duration", "reason"),
)

SILENCE = Shape(
    "An entry of silence",
    "a field of an entry of silence",
    {
        "finding": Field(
            "The code, as check and plan print it; quota-ops findings explains it.",
            "QO104",
        ),
        "reason": Field("Why it is intended.", "the till counts in MB"),
    },
    required=("finding", "reason"),
)

GUARDS = Shape(
    "guards",
    "a guard's number",
    {
        "removals": Field("How many rows one plan may remove.", "20"),
        "removals_share": Field(
            "How many percent of the rows one plan may remove; counts from "
            f"{counted(SHARE_COUNTS_FROM, 'removal')} on.",
            "10",
        ),
        "cut_share": Field("By how many percent one plan may cut a limit.", "50"),
        "raise_factor": Field("To how many times its value one plan may raise a limit.", "10"),
        "small_byte_rate": Field("The smallest byte rate that a plan may begin to set.", "16 KiB"),
        "small_percentage": Field("The smallest percentage that a plan may begin to set.", "0.1"),
    },
)

MEMORY = Shape(
    "memory",
    "a period of memory",
    {
        "late_writes": Field(
            "For how long a write without an answer is remembered after another run replaced it; if"
            " it arrives later, the row is named a late write.",
            "24h",
        ),
        "cleared": Field(
            "For how long a quota that a run cleared is remembered; if it comes back, as from a"
            " restored disk, it is named returned.",
            "30d",
        ),
    },
)

FILTER = Shape(
    "An entry of scope or protect",
    "an entity type",
    {
        kind: Field(f"{ANY}, a name, or {{default: true}}; {ANY} takes the default too.", ANY)
        for kind in (USER, CLIENT_ID, IP)
    },
)
