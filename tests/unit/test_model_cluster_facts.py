"""What brokers report about themselves, stored as JSON and read back unchanged."""

from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts

SILENT = ClusterFacts((BrokerFacts(3, "[::1]:9092"),), "User:ANONYMOUS", lacks_describe=True)
TOLD = ClusterFacts(
    brokers=(
        BrokerFacts(1, "kafka-1:9092", "4.3", "com.example.Grouped", 3, 8),
        BrokerFacts(2, "kafka-2:9092", "4.3", "com.example.Constant", 3, 8),
        BrokerFacts(3, "kafka-3:9092", "4.3", "", 3, 8),
    ),
    principal="User:svc-quota",
    scram_users=frozenset({"bob", "alice"}),
    acl_principals=frozenset({"User:bob", "User:*"}),
    client_id="quota-ops-eu",
)


def test_callback_classes_are_those_that_are_set() -> None:
    """A class that is not set and one that could not be read are both None."""
    assert TOLD.callback_classes == ("com.example.Constant", "com.example.Grouped")
    assert SILENT.callback_classes == ()
