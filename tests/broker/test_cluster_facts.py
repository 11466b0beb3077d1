"""What brokers report besides quotas: who may read it, and that no run waits for it."""

from collections.abc import Iterator
from contextlib import closing
from functools import partialmethod
from threading import Event

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from quota_ops.kafka import facts as facts_module
from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.clusters.cluster_facts import BrokerFacts, ClusterFacts
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.store.run.files import FACTS
from tests.broker.conftest import USER, Listeners
from tests.broker.rights import connection_of, rights
from tests.lab import Lab

ANY_TOPIC = ResourcePattern(ResourceType.TOPIC, "*")


@pytest.fixture(name="granted", autouse=True, scope="module")
def _granted(secured_broker: RunningBroker) -> Iterator[None]:
    with rights(secured_broker):
        yield


@pytest.mark.parametrize(
    ("user", "broker_is_told", "acls"),
    [
        ("admin", True, {"User:writer", "User:reader"}),
        ("writer", True, None),
        ("reader", True, None),
        ("none", False, None),
    ],
)
def test_a_refusal_leaves_out_what_it_refuses(
    user: str,
    broker_is_told: bool,  # noqa: FBT001
    acls: set[str] | None,
    secured_broker: RunningBroker,
) -> None:
    """DescribeConfigs covers the brokers, Describe the users; a refusal is not an empty list."""
    address = secured_broker.nodes[0].address("SASL")
    with open_cluster(connection_of(secured_broker, user), cluster_id=None) as cluster:
        facts = cluster.read_facts(10.0)

    told = BrokerFacts(1, address, "4.3", "", 3, 8) if broker_is_told else None
    assert facts == ClusterFacts(
        (told or BrokerFacts(1, address, "4.3"),),
        f"User:{user}",
        frozenset() if acls else None,
        frozenset(acls) if acls else None,
        lacks_describe=acls is None,
    )
    assert "NullPointerException" not in secured_broker.log.read_text()


def test_an_answer_that_is_too_long_costs_no_other(
    secured_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of ACLs that is too long is left out, and everything else is there."""
    every = [
        ACL(f"User:u{at}", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ANY_TOPIC)
        for at in range(200)
    ]
    monkeypatch.setattr(facts_module, "_LARGEST", 2_000)
    with (
        closing(KafkaAdminClient(bootstrap_servers=secured_broker.bootstrap())) as admin,
        open_cluster(connection_of(secured_broker, "admin"), cluster_id=None) as cluster,
    ):
        assert admin.create_acls(every)["failed"] == []
        facts = cluster.read_facts(10.0)
        admin.delete_acls(every)

    assert (facts.brokers[0].io_threads, facts.scram_users) == (8, frozenset())
    assert facts.acl_principals is None


def test_users_with_a_credential_are_known(listeners: Listeners) -> None:
    """Without an authorizer there are no ACLs, and every user can list SCRAM users."""
    text = f"bootstrap.servers={listeners.addresses['PLAINTEXT']}\n"
    connection = Connection.parse(text, name="demo", source="a test")
    with open_cluster(connection, cluster_id=None) as cluster:
        facts = cluster.read_facts(10.0)

    assert (facts.scram_users, facts.acl_principals) == (frozenset({USER}), None)
    assert not facts.lacks_describe


def test_a_describe_leaves_the_facts_in_the_run(lab: Lab) -> None:
    """The run folder has the brokers' facts after a describe, for every later stage."""
    lab.desire({})

    facts = lab.run("diff").find(FACTS)

    address = lab.cluster.brokers[0].address
    told = BrokerFacts(1, address, "4.3", "", 3, 8)
    assert facts == ClusterFacts((told,), "User:ANONYMOUS", frozenset(), None)


@pytest.mark.parametrize("seconds", [0.0, 30.0])
def test_facts_neither_fail_a_describe_nor_hold_it_up(
    seconds: float, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the query of facts fails or takes too long, the run has late facts, and succeeds."""

    def facts(_cluster: Cluster, _timeout: float) -> ClusterFacts:
        Event().wait(seconds)
        raise OSError

    monkeypatch.setattr(Cluster, "read_facts", facts)
    monkeypatch.setattr(Cluster, "start_facts_query", partialmethod(Cluster.start_facts_query, 0.1))
    lab.desire({})

    folder = lab.run("diff")

    broker = BrokerFacts(1, lab.cluster.brokers[0].address)
    late = ClusterFacts((broker,), "User:ANONYMOUS", late=(1,), late_users=True)
    assert (folder.find(FACTS), folder.count(DIFFERENCES)) == (late, 0)
    seconds_taken = folder.stage_result("describe").seconds
    assert seconds_taken is not None
    assert seconds_taken < seconds or seconds == 0.0
