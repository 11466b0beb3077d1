"""A cluster's policy: its scope, its protected entities, its guards and how runs behave."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, get_type_hints

from msgspec import Struct, field

from quota_ops.model.plans.capacity import Capacity
from quota_ops.model.plans.ceilings import Ceiling
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match
from quota_ops.model.quotas.owners import Owner
from quota_ops.model.quotas.quota import STARVING_BYTES, STARVING_PERCENTAGE
from quota_ops.model.stored import to_json
from quota_ops.model.text import counted
from quota_ops.model.usage.usage import UsagePolicy

CONNECTION_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
"""A file is named after it, so it must be a valid file name and not a path."""
CONNECTION_RULE = (
    "may have up to 200 letters, digits, '.', '_' and '-', and must not start with '.' or '-'"
)

INVENTORY = re.compile(
    r"(s3|gs|az|abfs|abfss)://[A-Za-z0-9][A-Za-z0-9@._-]*(/[^/\s]+)+/?"
    r"|(?!\.{1,2}(/|$)|/)([^/:]+)(/(?!\.{1,2}(/|$))[^/:]+)*/?"
)
"""A path below the cluster's folder, without `..`, or an address in a bucket."""


SHARE_COUNTS_FROM = 5
"""Below this number of removals the share means little: one of four rows is 25 percent."""


class DriftPolicy(StrEnum):
    """How a plan treats a row that was changed outside Git."""

    REPAIR = "repair"
    ASK = "ask"
    REPORT = "report"


class ApprovalPolicy(StrEnum):
    """Which plans need approval before they are applied."""

    NEVER = "never"
    """None: a run whose plan a guard blocks ends there."""
    ON_BREACH = "on_breach"
    """A plan that a guard blocks."""
    ALWAYS = "always"
    """Every plan that writes."""


class VerifyPolicy(StrEnum):
    """The brokers that a run queries and verifies."""

    EVERY_BROKER = "every_broker"
    """Each broker, by the address that it advertises."""
    BOOTSTRAP = "bootstrap"
    """Only the bootstrap address: over a private link no other may be reachable."""


WEEK = 7 * 24 * 60 * 60
"""How many seconds an approval is valid by default."""

IN_EVERY_DIGEST = frozenset(
    {
        *("cluster_id", "connection", "schedule", "scope", "protect", "drift", "clear_unmanaged"),
        *("guards", "removals", "removals_share", "cut_share"),
    }
)
"""The fields, including those of `guards`, that a digest includes whatever their value.

It includes another field only if that has not its default, so that an approval still names its plan
after an upgrade to a version with more fields.
"""


def _any(*types: str) -> EntityFilter:
    return EntityFilter(tuple(FilterPart(kind, Match.ANY) for kind in types))


EVERYTHING = (_any(USER), _any(CLIENT_ID), _any(USER, CLIENT_ID), _any(IP))
"""The default scope: every entity that brokers allow to be altered."""


class ThresholdField(NamedTuple):
    """What cluster.yaml says of a threshold; without an example, its default is one.

    `kind` is the kind of value: whole, percent, factor or byte_rate. `strictest` is which of two
    values blocks more plans.
    """

    kind: str
    meaning: str
    example: str = ""
    strictest: Callable[..., Any] = min


class GuardThresholds(Struct, frozen=True):
    """Numbers beyond which a guard blocks the plan, as cluster.yaml may set them."""

    removals: Annotated[
        int, ThresholdField("whole", "The number of rows that one plan may remove.")
    ] = 20
    removals_share: Annotated[
        float,
        ThresholdField(
            "percent",
            "The percentage of managed rows that one plan may remove; checked from "
            f"{counted(SHARE_COUNTS_FROM, 'removal')} on.",
        ),
    ] = 10.0
    cut_share: Annotated[
        float, ThresholdField("percent", "The percentage by which one plan may cut a limit.")
    ] = 50.0
    raise_factor: Annotated[
        float, ThresholdField("factor", "The factor by which one plan may raise a limit.")
    ] = 10.0
    small_byte_rate: Annotated[
        float,
        ThresholdField(
            "byte_rate", "The smallest byte rate that a plan may introduce.", "16 KiB", max
        ),
    ] = STARVING_BYTES
    small_percentage: Annotated[
        float,
        ThresholdField("percent", "The smallest percentage that a plan may introduce.", "", max),
    ] = STARVING_PERCENTAGE
    blast_radius: Annotated[
        int, ThresholdField("whole", "How many clients may get less by one plan.")
    ] = 1_000
    blast_radius_share: Annotated[
        float, ThresholdField("percent", "The same in percent of the inventory's clients.")
    ] = 10.0
    would_throttle: Annotated[
        int | None,
        ThresholdField(
            "whole",
            "For how many minutes a cut may have throttled clients, by their use of the last seven"
            " days. Without it, plans show this and no guard compares it.",
            "60",
        ),
    ] = None


THRESHOLDS: Mapping[str, ThresholdField] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(GuardThresholds, include_extras=True).items()
}


class Memory(Struct, frozen=True):
    """How many seconds a ledger remembers a write that may arrive late, and a cleared quota."""

    late_writes: int = 24 * 60 * 60
    cleared: int = 30 * 24 * 60 * 60


class Freeze(Struct, frozen=True):
    """A window without writes: a cron expression in a time zone, and a duration in seconds."""

    cron: str
    zone: str
    duration: int
    reason: str


class RetiredBroker(Struct, frozen=True):
    """A broker that is still registered and will not come back: no run waits for it."""

    id: int
    reason: str


BESIDE = frozenset({"paused", "freeze", "verify", "repository", "capacity"})
"""Fields that do not decide what is written except through the rows, only when, how it is verified,
and what reports show beside it: no digest includes them."""


class Policy(Struct, frozen=True):
    """The content of cluster.yaml, and the name of the cluster's folder."""

    cluster: str
    cluster_id: str
    connection: str
    schedule: str | None = None
    scope: tuple[EntityFilter, ...] = EVERYTHING
    protect: tuple[EntityFilter, ...] = ()
    drift: DriftPolicy = DriftPolicy.REPAIR
    approval: ApprovalPolicy = ApprovalPolicy.ON_BREACH
    approval_valid_for: int = WEEK
    """How many seconds an approval or an override is valid."""
    clear_unmanaged: bool = False
    guards: GuardThresholds = field(default_factory=GuardThresholds)
    paused: str | None = None
    freeze: tuple[Freeze, ...] = ()
    verify: VerifyPolicy = VerifyPolicy.EVERY_BROKER
    memory: Memory = field(default_factory=Memory)
    retired_brokers: tuple[RetiredBroker, ...] = ()
    inventory: str | None = None
    """The clients of the cluster: a path below its folder, or an address in a bucket."""
    repository: str | None = None
    """Where a code host shows the repository: see `Repository.parse`."""
    owners: tuple[Owner, ...] = ()
    """What belongs to whom; empty if only the `owner` of each file counts."""
    ceilings: tuple[Ceiling, ...] = ()
    """What each owner may declare."""
    usage: UsagePolicy | None = None
    """Where the use of its clients is measured."""
    capacity: Capacity | None = None
    """What a broker can serve; None if nobody declared it."""

    @property
    def inventory_in_git(self) -> str:
        """The path of an inventory below the cluster's folder; empty if it is not there."""
        return "" if self.inventory is None or "://" in self.inventory else self.inventory

    @property
    def retired(self) -> dict[int, str]:
        """The reason why each retired broker is ignored, by its id."""
        return {broker.id: broker.reason for broker in self.retired_brokers}

    def as_json(self) -> dict[str, Any]:
        """Return the policy as JSON values in canonical form, for digests and people."""
        values: dict[str, Any] = to_json(Policy, self)
        scope, protect = (list(map(_filter_json, some)) for some in (self.scope, self.protect))
        return values | {"scope": scope, "protect": protect}

    def decisive_fields(self) -> dict[str, Any]:
        """Return the JSON values that decide what is written: all but the folder and BESIDE."""
        return {
            name: value
            for name, value in self.as_json().items()
            if name != "cluster" and name not in BESIDE
        }

    def digest_fields(self) -> dict[str, Any]:
        """Return the decisive fields for a digest, without most that have their default."""
        usual = Policy("", "", "").decisive_fields()
        fields = _select_unusual(self.decisive_fields(), usual)
        return fields | {"guards": _select_unusual(fields["guards"], usual["guards"])}


def _select_unusual(fields: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in fields.items()
        if name in IN_EVERY_DIGEST or value != usual[name]
    }


def _filter_json(entity_filter: EntityFilter) -> dict[str, Any]:
    return {
        part.type: {"match": part.match.name.lower(), "name": part.name}
        for part in entity_filter.parts
    }
