"""Facts that brokers report about themselves besides quotas; findings and warnings use them."""

from dataclasses import dataclass


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

    @property
    def threads(self) -> int | None:
        """The threads whose time request_percentage limits; None if they are not all known."""
        if self.network_threads is None or self.io_threads is None:
            return None
        return self.network_threads + self.io_threads


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
        return tuple(
            sorted({broker.callback_class for broker in self.brokers if broker.callback_class})
        )
