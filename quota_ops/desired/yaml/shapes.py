"""The mappings of the YAML files: their fields, with a description and an example of each.

The reader and the JSON Schemas use the same tables.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import yaml
from msgspec import Struct

from quota_ops.desired.yaml import values
from quota_ops.desired.yaml.values import read_text
from quota_ops.model.moment import format_duration
from quota_ops.model.plans import capacity, policy
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER
from quota_ops.model.quotas.quota import BYTES, MEASURED_KEYS, QUOTA_KEYS
from quota_ops.model.usage.usage import LABEL, UsagePolicy

DEFAULT = "default"
ANY = "any"
_POLICY = policy.Policy(cluster="", cluster_id="", connection="")
_USAGE = UsagePolicy(prometheus="")
"""The defaults."""


class Field(NamedTuple):
    """A field: its description, and an example of its value as YAML.

    `read` reads its value and `schema` is its JSON Schema, unless they depend on other fields.
    """

    description: str
    example: str
    read: Callable[[str, yaml.Node], Any] | None = None
    schema: Mapping[str, Any] | None = None


class Shape(Struct, frozen=True):
    """A mapping: what messages call it, its fields, and which are required.

    `instead` has the fields that replace a required one, `noun` what messages call one of them if
    it is not "a field of" the mapping.
    """

    title: str
    fields: Mapping[str, Field]
    required: tuple[str, ...] = ()
    instead: Mapping[str, tuple[str, ...]] = {}
    noun: str = ""

    @property
    def field_noun(self) -> str:
        """What messages call a field: `a field of a quota`."""
        return self.noun or f"a field of {self.title[0].lower()}{self.title[1:]}"

    @property
    def takes(self) -> str:
        """The sentence that lists the fields, for a remedy."""
        return f"Valid fields: {', '.join(self.fields)}."


QUOTAS_FILE = Shape(
    "A quotas file",
    {
        "owner": Field(
            "The team that owns these quotas; reports show it.", "your-team", *values.NOTE
        ),
        "quotas": Field(
            "The quotas. Each has an entity and its limits.",
            "[{user: alice, limits: {producer_byte_rate: 10 MiB}}]",
        ),
        "groups": Field(
            "Groups of clients that share one budget.",
            "[{name: analytics, members: [{user: spark}, {user: flink}],"
            " budget: {consumer_byte_rate: 90 MiB}}]",
        ),
    },
    required=("owner", "quotas"),
    instead={"quotas": ("groups",)},
)

QUOTA = Shape(
    "A quota",
    {
        USER: Field(
            "The user, as Kafka authenticates it, without 'User:', or a list of users that"
            " each get the limits. {default: true} means every user without a quota of its own.",
            "alice",
        ),
        CLIENT_ID: Field(
            "The client.id that a program sends, or a list. Together with user, the quota is for"
            " that user's clients with this id. {default: true} means every id without a quota of"
            " its own.",
            "billing-app",
        ),
        IP: Field(
            "The address that connections come from, IPv4 or IPv6 in its shortest form, or a list;"
            " never with user or client-id. {default: true} means every address without a quota of"
            " its own.",
            "10.20.0.7",
        ),
        "limits": Field(
            "The limits. Each is a number in the unit of its key, or unlimited to exempt the entity"
            " from a default.",
            "{producer_byte_rate: 10 MiB}",
        ),
        "cluster_limits": Field(
            "Limits for the whole cluster: each broker gets its share.",
            "{producer_byte_rate: 300 MiB}",
        ),
        "topics": Field(
            "The topics that the client uses, by name or by prefix: only brokers that lead one of"
            " their partitions share cluster_limits.",
            "[orders, payments-*]",
            None,
            {
                "type": "array",
                "items": {"type": "string", "pattern": r"^[a-zA-Z0-9._-]{1,249}\*?$"},
                "minItems": 1,
                "uniqueItems": True,
            },
        ),
        "profile": Field(
            "The profile whose limits apply; a key in limits takes precedence over the profile.",
            "gold",
        ),
        "until": Field(
            "When the quota ends, with the zone.",
            "2026-12-01 18:00 Europe/Berlin",
            None,
            values.TIME.schema,
        ),
        "overrides": Field(
            "Limits that apply for some time in place of the others.",
            "[{until: 2026-12-01 18:00 Europe/Berlin, limits: {producer_byte_rate: 50 MiB},"
            " reason: Black Friday}]",
        ),
        "reason": Field(
            "Why the quota is set; plans and reports show it.", "card settlement", *values.NOTE
        ),
        "silence": Field(
            "Findings that are intended for this entity, each with a reason.",
            "[{finding: QO104, reason: the till counts in MB}]",
        ),
    },
    required=("limits",),
    instead={"limits": ("profile", "cluster_limits")},
)

LIMITS = Shape(
    "limits",
    {
        key.name: Field(
            f"{key.limits.capitalize()}, in bytes per second; units up to GiB, or unlimited.",
            "10 MiB",
        )
        if key.unit == BYTES
        else Field(f"{key.limits.capitalize()}, in {key.unit}, or unlimited.", "50")
        for key in QUOTA_KEYS.values()
    },
    noun="a quota key",
)

OVERRIDE = Shape(
    "An override",
    {
        "from": Field(
            "When it starts, with the zone. Without it, it applies immediately.",
            "2026-11-27T08:00+01:00",
            *values.TIME,
        ),
        "until": Field(
            "When it ends, with the zone: from then on, the other limits apply again.",
            "2026-12-01 18:00 Europe/Berlin",
            *values.TIME,
        ),
        "limits": Field("The limits for that time.", "{producer_byte_rate: 50 MiB}"),
        "cluster_limits": Field(
            "The limits for the whole cluster for that time.", "{producer_byte_rate: 600 MiB}"
        ),
        "reason": Field("Why; plans and reports show it.", "Black Friday", *values.NOTE),
    },
    required=("until", "limits"),
    instead={"limits": ("cluster_limits",)},
)

GROUP = Shape(
    "A group",
    {
        "name": Field("Its name; plans and reports show it.", "analytics", *values.NOTE),
        "members": Field(
            "The users, client ids or pairs that share the budget.",
            "[{user: spark}, {user: flink, weight: 2}]",
        ),
        "budget": Field(
            "The total for all members, divided by their weights.", "{consumer_byte_rate: 90 MiB}"
        ),
        "minimum": Field("The smallest share of a member.", "{consumer_byte_rate: 10 MiB}"),
        "weights": Field(
            "`usage`: half of the budget is divided by weight, the other half by recorded use.",
            "usage",
            *values.BY_USE,
        ),
        "overrides": Field(
            "Budgets that apply for some time, like overrides of a quota.",
            "[{until: 2026-12-01 18:00 Europe/Berlin, limits: {consumer_byte_rate: 120 MiB}}]",
        ),
        "reason": Field("Why; plans and reports show it.", "nightly reports", *values.NOTE),
    },
    required=("name", "members", "budget"),
)

MEMBER = Shape(
    "A member",
    {
        USER: Field("The user.", "spark"),
        CLIENT_ID: Field("The client id.", "spark-batch"),
        "weight": Field(
            "Its share: a member of weight 2 gets twice as much as one of weight 1, the default.",
            "2",
            *values.WEIGHT,
        ),
    },
)

PROFILE = Shape(
    "A profile",
    {
        **LIMITS.fields,
        "profile": Field(
            "Another profile, whose limits apply to the keys that this one does not set.", "silver"
        ),
    },
)

CAPACITY = Shape(
    "capacity",
    {
        **LIMITS.fields,
        "factor": Field(
            "How many times the capacity may be promised before check reports it.",
            "3",
            *values.FACTOR.default(capacity.Capacity(()).factor),
        ),
    },
)

CEILING = Shape(
    "A ceiling",
    {
        **LIMITS.fields,
        "total": Field(
            "The highest limits of all its quotas together.", "{producer_byte_rate: 1 GiB}"
        ),
    },
)

SHARED_FILE = Shape(
    "A shared file",
    {"profiles": Field("Profiles, as in cluster.yaml.", "{gold: {producer_byte_rate: 50 MiB}}")},
    required=("profiles",),
)

USE = Shape(
    "An entry of use",
    {
        "file": Field("The name of the file below _shared.", "gold.yaml", read_text),
        "factor": Field(
            "The factor for the limits of its profiles on this cluster; whole numbers are"
            " rounded down.",
            "0.5",
            *values.MULTIPLIER,
        ),
    },
    required=("file",),
)

CLUSTER_FILE = Shape(
    "cluster.yaml",
    {
        "cluster_id": Field(
            "The cluster's id in Kafka. quota-ops never writes to a cluster with another id.",
            "MkU3OEVBNTcwNTJENDM2Qg",
            *values.CLUSTER_ID,
        ),
        "connection": Field(
            "The name of a connection. Its hosts and secrets stay outside Git.",
            "demo",
            *values.CONNECTION,
        ),
        "schedule": Field(
            "When Airflow reconciles the cluster: cron, UTC. Without it, when you trigger the DAG.",
            '"*/30 * * * *"',
            *values.SCHEDULE,
        ),
        "scope": Field(
            "The entities that this folder may declare. Without it, all of them.",
            "[{user: any}, {user: any, client-id: any}]",
        ),
        "protect": Field(
            "Entities that quota-ops never sets and never clears, spelled as on the cluster.",
            "[{user: kafka-operator}]",
        ),
        "drift": Field(
            "How a plan treats a row that was changed outside Git: repair, ask or report.",
            "repair",
            *values.one_of(policy.DriftPolicy).default(str(_POLICY.drift)),
        ),
        "approval": Field(
            "Which plans need approval: never, on_breach (a guard blocks the plan) or always.",
            "on_breach",
            *values.one_of(policy.ApprovalPolicy).default(str(_POLICY.approval)),
        ),
        "approval_valid_for": Field(
            "How long an approval or an override is valid.",
            "7d",
            *values.DURATION.default(format_duration(_POLICY.approval_valid_for)),
        ),
        "verify": Field(
            "Which brokers runs query and verify: every_broker, or bootstrap if only the bootstrap"
            " address is reachable, for example over a private link.",
            "every_broker",
            *values.one_of(policy.VerifyPolicy).default(str(_POLICY.verify)),
        ),
        "retired_brokers": Field(
            "Brokers that are still registered but will not come back, each with a reason. They do"
            " not make runs fail.",
            "[{id: 3, reason: scaled down to two brokers}]",
        ),
        "clear_unmanaged": Field(
            "Whether runs clear quotas in scope that Git lacks, after one verified run.",
            "false",
            *values.FLAG.default(_POLICY.clear_unmanaged),
        ),
        "paused": Field(
            "Why runs write nothing for now; plans and reports still work.",
            "broker upgrade",
            *values.PAUSED,
        ),
        "freeze": Field(
            "Windows in which runs write nothing; plans and reports still work.",
            '[{cron: "0 18 * * fri", zone: Europe/Berlin, duration: 62h, reason: the weekend}]',
        ),
        "guards": Field("The thresholds beyond which a guard blocks a plan.", "{removals: 20}"),
        "memory": Field(
            "How long the ledger remembers writes that may arrive late, and cleared quotas.",
            "{late_writes: 24h}",
        ),
        "inventory": Field(
            "The file or folder with the cluster's clients.", "clients.csv", *values.INVENTORY_PATH
        ),
        "usage": Field(
            "The Prometheus that measures what clients use.",
            "{prometheus: monitoring, match: {cluster: orders}}",
        ),
        "repository": Field(
            "The repository's web address; reports link to it.",
            "https://github.com/acme/quotas",
            *values.REPOSITORY,
        ),
        "owners": Field(
            "What belongs to whom. A quota of an entity that belongs to a different owner than its "
            "file is an error.",
            "{payments: {user_prefixes: [payments-], files: [payments.yaml]}}",
        ),
        "capacity": Field(
            "What a broker can serve, by key; check reports limits that are more together.",
            "{producer_byte_rate: 1 GiB, factor: 3}",
        ),
        "ceilings": Field(
            "What each owner may declare; a guard blocks more.",
            "{payments: {producer_byte_rate: 200 MiB, total: {producer_byte_rate: 1 GiB}}}",
        ),
        "use": Field(
            "Files of desired_state/_shared whose profiles this cluster uses.", "[gold.yaml]"
        ),
        "profiles": Field(
            "Sets of limits that quotas refer to by name.",
            "{gold: {producer_byte_rate: 50 MiB, request_percentage: 200}}",
        ),
        "silence": Field(
            "Findings that are intended on the whole cluster, each with a reason.",
            "[{finding: QO202, reason: all our users authenticate by certificate}]",
        ),
    },
    required=("cluster_id", "connection"),
)

OWNER = Shape(
    "An owner",
    {
        "users": Field("Users, by their exact names.", "[alice, payments-gw]"),
        "user_prefixes": Field("The prefixes of the names of further users.", "[payments-]"),
        "client_ids": Field("Client ids, by their exact names.", "[billing-app]"),
        "client_id_prefixes": Field("The prefixes of further client ids.", "[billing-]"),
        "ips": Field("Addresses and networks.", "[10.20.0.7, 10.30.0.0/16]"),
        "defaults": Field(
            "Whether quotas of which every part is {default: true} belong to this owner.", "true"
        ),
        "files": Field(
            "The files of quotas that this owner may write, below the cluster's folder; folders end"
            " with /.",
            "[payments.yaml, billing/]",
        ),
        "code_owners": Field(
            "Who approves changes of these files: CODEOWNERS must list the same.",
            '["@acme/payments"]',
        ),
    },
)

METRICS = Shape(
    "A mapping of metrics",
    {
        key: Field(f"The metric for {key}.", "'used{resource=\"Produce\"}'", *values.METRIC)
        for key in MEASURED_KEYS
    },
    noun="a quota key whose use brokers measure",
)

USAGE_LABELS = Shape(
    "labels",
    {
        USER: Field("The label that has the user.", "user", *values.LABEL),
        CLIENT_ID: Field("The label that has the client id.", "clientId", *values.LABEL),
    },
    noun="an entity type in labels",
)

USAGE = Shape(
    "usage",
    {
        "prometheus": Field(
            "The name of a connection to a Prometheus, or to a service with its HTTP API. Its"
            " address and secrets stay outside Git.",
            "monitoring",
            *values.CONNECTION,
        ),
        "preset": Field(
            f"How the exporter names metrics and labels; the default is {_USAGE.preset}.",
            "jmx-exporter",
            *values.PRESET.default(str(_USAGE.preset)),
        ),
        "match": Field(
            "Labels that the series of this cluster's brokers have, and no others.",
            "{cluster: orders}",
            None,
            {
                "type": "object",
                "propertyNames": {"pattern": f"^{LABEL.pattern}$"},
                "additionalProperties": {"type": "string", "minLength": 1},
            },
        ),
        "broker": Field(
            f"The label that tells brokers apart; the default is {_USAGE.broker}.",
            "instance",
            *values.LABEL.default(_USAGE.broker),
        ),
        "metrics": Field(
            "The metrics of use by quota key, where they are not those of the preset.",
            "{producer_byte_rate: 'used{resource=\"Produce\"}'}",
        ),
        "throttle_times": Field(
            "The metrics of throttle times by quota key, likewise.",
            "{producer_byte_rate: 'throttled{resource=\"Produce\"}'}",
        ),
        "labels": Field(
            "The labels of user and client-id, where they are not those of the preset.",
            "{user: user, client-id: clientId}",
        ),
        "step": Field(
            "The interval of the scrapes, at most 5m; the default is 60s.",
            "60s",
            *values.STEP.default(f"{_USAGE.step}s"),
        ),
    },
    required=("prometheus",),
)

RETIRED_BROKER = Shape(
    "An entry of retired_brokers",
    {
        "id": Field("The broker's node.id.", "3", *values.BROKER_ID),
        "reason": Field("Why it will not come back.", "scaled down to two brokers", *values.NOTE),
    },
    required=("id", "reason"),
)

FREEZE = Shape(
    "An entry of freeze",
    {
        "cron": Field("When the window begins: five cron fields.", '"0 18 * * fri"', *values.CRON),
        "zone": Field("The name of the time zone of `cron`.", "Europe/Berlin", *values.ZONE),
        "duration": Field(
            "How long the window lasts, even if the clocks change meanwhile.",
            "62h",
            *values.DURATION,
        ),
        "reason": Field(
            "Why; runs that it stops show it.", "no changes over the weekend", *values.NOTE
        ),
    },
    required=("cron", "zone", "duration", "reason"),
)

SILENCE = Shape(
    "A silence entry",
    {
        "finding": Field(
            "The code that check and plan print; quota-ops findings CODE explains it.", "QO104"
        ),
        "reason": Field("Why it is intended.", "the till counts in MB", *values.NOTE),
    },
    required=("finding", "reason"),
)

_KINDS = {
    "whole": values.WHOLE,
    "percent": values.PERCENT,
    "factor": values.FACTOR,
    "byte_rate": values.BYTE_RATE,
}

GUARDS = Shape(
    "guards",
    {
        name: Field(
            about.meaning, about.example or f"{value:g}", *_KINDS[about.kind].default(value)
        )
        for name, about in policy.THRESHOLDS.items()
        for value in [getattr(_POLICY.guards, name)]
    },
    noun="a threshold of guards",
)

MEMORY = Shape(
    "memory",
    {
        "late_writes": Field(
            "How long a write that no run has read back is remembered: longer than a broker or a"
            " network can delay a request. If it arrives after another run, it is reported as a"
            " late write.",
            "24h",
            *values.DURATION.default(format_duration(_POLICY.memory.late_writes)),
        ),
        "cleared": Field(
            "How long a quota that a run cleared is remembered. If it comes back, for example from"
            " a restored disk, it is reported as returned.",
            "30d",
            *values.DURATION.default(format_duration(_POLICY.memory.cleared)),
        ),
    },
    noun="a period of memory",
)

FILTER = Shape(
    "An entry of scope or protect",
    {
        kind: Field(f"{ANY}, a name, or {{default: true}}. {ANY} includes the default.", ANY)
        for kind in (USER, CLIENT_ID, IP)
    },
    noun="an entity type",
)

FIELD_NAMES = frozenset(
    name for shape in list(vars().values()) if isinstance(shape, Shape) for name in shape.fields
)
"""The names of all fields."""
