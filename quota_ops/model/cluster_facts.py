"""Facts that brokers report about themselves besides quotas; findings and warnings use them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

from quota_ops.model.field_types import check_types


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker; a value that could not be read is None.

    `version` is a release line of Apache Kafka, `4.3`. `callback_class` is the value of
    client.quota.callback.class, "" when none is set and Kafka enforces its own quotas.
    """

    id: int
    address: str
    version: str | None = None
    callback_class: str | None = None
    network_threads: int | None = None
    io_threads: int | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The brokers in order of id, the identity of quota-ops, and the users of the cluster.

    `principal` is the user of quota-ops, as far as the client can know it: `User:alice`;
    `client_id` is its client id. `scram_users` have a SCRAM credential, `acl_principals` an ACL;
    both are None if the cluster does not support or authorize the query, or responds too late.
    `lacks_describe` is whether it rejected one of them because quota-ops is not authorized; without
    an authorizer, a cluster has no ACLs and rejects no query. `late` are the ids of the brokers
    whose settings did not arrive in time, `late_users` is whether the users or ACLs did not.
    """

    brokers: tuple[BrokerFacts, ...]
    principal: str
    scram_users: frozenset[str] | None = None
    acl_principals: frozenset[str] | None = None
    client_id: str = "quota-ops"
    lacks_describe: bool = False
    late: tuple[int, ...] = ()
    late_users: bool = False

    @property
    def callback_classes(self) -> tuple[str, ...]:
        """The values of client.quota.callback.class that brokers have set, sorted.

        Such a class replaces Kafka's own decision on limits, and may ignore stored ones (KIP-257).
        """
        return tuple(sorted({one.callback_class for one in self.brokers if one.callback_class}))

    def as_json(self) -> dict[str, Any]:
        """Return the facts as JSON values, with names sorted."""
        return {
            "principal": self.principal,
            "client_id": self.client_id,
            "brokers": [
                {field.name: getattr(one, field.name) for field in fields(one)}
                for one in self.brokers
            ],
            "scram_users": _sorted(self.scram_users),
            "acl_principals": _sorted(self.acl_principals),
            "lacks_describe": self.lacks_describe,
            "late": list(self.late),
            "late_users": self.late_users,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Parse the output of `as_json`; KeyError or TypeError for anything else."""
        facts = cls(
            brokers=check_types([BrokerFacts(**one) for one in values["brokers"]]),
            principal=values["principal"],
            client_id=values["client_id"],
            scram_users=_names(values["scram_users"]),
            acl_principals=_names(values["acl_principals"]),
            lacks_describe=values["lacks_describe"],
            late=tuple(values["late"]),
            late_users=values["late_users"],
        )
        return check_types([facts])[0]


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _names(values: Iterable[str] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(values)
