"""The brokers of the suite: real ones, started when a test first asks, gone at its end."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from quota_ops.sandbox.broker import RunningBroker, start_broker
from quota_ops.sandbox.config import BrokerConfig
from quota_ops.sandbox.demo_cluster import DEMO_CLUSTER_ID
from quota_ops.sandbox.pins import DEFAULT_VERSION
from tests.broker.rights import secured

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
    config = secured(DEFAULT_VERSION)
    with start_broker(config, tmp_path_factory.mktemp("secured-broker")) as running:
        yield running
