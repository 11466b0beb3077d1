"""The brokers of the suite: real ones, started when a test first asks, gone at its end."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from quota_ops.sandbox.broker import RunningBroker, start_broker
from quota_ops.sandbox.config import BrokerConfig
from quota_ops.sandbox.demo_cluster import DEMO_CLUSTER_ID

SECURED_CLUSTER_ID = "b3JkZXJzLWV1LWNsdXN0ZQ"
"""The ids are part of every plan's digest, and digests are compared whole."""

settings.register_profile("suite", deadline=None)  # a busy machine is no failure
settings.load_profile("suite")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker without logins, shared by the whole run: leave its quotas as you found them."""
    config = BrokerConfig(cluster_id=DEMO_CLUSTER_ID)
    with start_broker(config, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker with an authorizer, and on its listener SASL four logins of which admin may all.

    The others hold no permission until a test gives them one, by `bootstrap("SASL")` as admin.
    """
    config = BrokerConfig(
        cluster_id=SECURED_CLUSTER_ID,
        listeners={"SASL": "SASL_PLAINTEXT"},
        users={name: f"{name}-secret" for name in ("admin", "writer", "reader", "none")},
        super_users=("admin",),
    )
    with start_broker(config, tmp_path_factory.mktemp("secured-broker")) as running:
        yield running
