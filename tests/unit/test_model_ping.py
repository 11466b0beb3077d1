"""The result of a ping: success, a missing permission, or a missing broker."""

import pytest
from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import Absent, BrokerFacts, ClusterFacts
from quota_ops.model.clusters.ping import BrokerPing, ClusterPing, Mode, Right
from quota_ops.model.runs.verification import BACK_OR_GONE, BOOTSTRAP
from quota_ops.report.outline.layout import plain
from quota_ops.report.outline.sentences import INCOMPLETE
from quota_ops.report.screens.ping import ping_screen

FIRST, SECOND = BrokerFacts(1, "kafka-1:9092", "4.3", "", 3, 8), BrokerFacts(2, "kafka-2:9092")
FIRST_UNKNOWN = BrokerFacts(1, "kafka-1:9092")
DESCRIBE = Right("describe quotas", "DescribeConfigs", granted=True, grant="grant describe")
NO_ALTER = Right("alter quotas", "AlterConfigs", granted=False, grant="grant alter")
UNSURE = Right(
    "alter quotas", "AlterConfigs", granted=None, grant="grant alter", error="timed out after 4 s"
)
NO_USERS = Right("list users", "Describe", granted=False, grant="grant users", needed=False)


def pinged(*rights: Right, error: str | None = None) -> ClusterPing:
    """Return two brokers, of which the second may have an error."""
    second = BrokerPing(SECOND, None if error else 0.004, error)
    brokers = (BrokerPing(FIRST, 0.003), second)
    return ClusterPing("MkU3OEVBNTcwNTJENDM2Qg", "User:svc", Mode.KRAFT, brokers, rights)


@pytest.mark.parametrize(
    ("ping", "exit_code", "missing"),
    [
        (pinged(DESCRIBE, NO_USERS), 0, ()),
        (pinged(DESCRIBE, NO_ALTER), 1, (NO_ALTER,)),
        (pinged(DESCRIBE, UNSURE), 3, ()),
        (pinged(NO_ALTER, error="timed out after 4 s"), 3, (NO_ALTER,)),
    ],
)
def test_exit_code(ping: ClusterPing, exit_code: int, missing: tuple[Right, ...]) -> None:
    """An unreachable broker outweighs a missing permission that an administrator can grant."""
    assert (ping.exit_code, ping.missing) == (exit_code, missing)
    assert ping.facts == ClusterFacts((FIRST, SECOND), "User:svc")


def test_what_is_not_known_is_said() -> None:
    """An unreachable broker, or controller, is in the table with the reason."""
    assert plain(ping_screen("demo", pinged(DESCRIBE, UNSURE, error="timed out after 4 s"))) == (
        "demo (MkU3OEVBNTcwNTJENDM2Qg, as in cluster.yaml; KRaft)      1 of 2 brokers respond\n"
        "\n"
        "  broker  address       Kafka    response\n"
        "  1       kafka-1:9092  4.3      3 ms\n"
        "  2       kafka-2:9092  unknown  timed out after 4 s\n"
        "\n"
        "  User:svc is authorized to\n"
        "  describe quotas            yes\n"
        "  alter quotas               unknown: timed out after 4 s\n"
        "\n"
        "Broker 2 does not respond at the address that it advertises. If only the bootstrap "
        "address is reachable, for example over a private link, set verify: bootstrap in "
        "cluster.yaml.\n"
    )


def test_a_broker_without_clients_is_missed() -> None:
    """A fenced broker counts, and differs from an unreachable one; a retired one does not count."""
    absent = (Absent(3, "kafka-3:9092", "is fenced"), Absent(4, None, "is missing", "scaled down"))
    ping = replace(pinged(DESCRIBE), absent=absent, complete=False)

    assert (ping.exit_code, ping.unreached) == (3, ())
    assert replace(ping, absent=absent[1:]).exit_code == 0
    assert replace(ping, bootstrap=True).missed == ()
    assert plain(ping_screen("demo", ping)) == (
        "demo (MkU3OEVBNTcwNTJENDM2Qg, as in cluster.yaml; KRaft)      2 of 3 brokers respond\n"
        "\n"
        "  broker  address       Kafka    response\n"
        "  1       kafka-1:9092  4.3      3 ms\n"
        "  2       kafka-2:9092  unknown  4 ms\n"
        "  3       kafka-3:9092  unknown  is fenced\n"
        "  4       unknown       unknown  is missing; retired in cluster.yaml: scaled down\n"
        "\n"
        "  User:svc is authorized to\n"
        "  describe quotas            yes\n"
        "\n"
        f"Broker 3 could not be queried. {BACK_OR_GONE}\n"
        "\n"
        f"{INCOMPLETE}\n"
    )


def test_only_the_bootstrap_address_was_asked() -> None:
    """The broker that responds there has the first row.

    The others are unknown, which is not an error.
    """
    asked = BrokerPing(BrokerFacts(BOOTSTRAP, "link:9092", "4.3"), 0.003)
    others = (BrokerPing(FIRST_UNKNOWN), BrokerPing(SECOND))
    rights = (DESCRIBE,)
    ping = ClusterPing("id", "User:svc", None, (asked, *others), rights, bootstrap=True)

    assert (ping.exit_code, ping.unreached) == (0, ())
    assert plain(ping_screen("demo", ping)) == (
        "demo (id, as in cluster.yaml)      the bootstrap address responds\n"
        "\n"
        "  broker   address       Kafka    response\n"
        "  unknown  link:9092     4.3      3 ms\n"
        "  1        kafka-1:9092  unknown  not queried\n"
        "  2        kafka-2:9092  unknown  not queried\n"
        "\n"
        "  User:svc is authorized to\n"
        "  describe quotas            yes\n"
    )
