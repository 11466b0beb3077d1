"""The brokers of the suite: real ones, started at the first use, stopped at its end."""

import gc
import os
import socket
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from quota_ops.lab.kafka.broker import RunningBroker, start_broker
from quota_ops.lab.kafka.config import BrokerConfig
from quota_ops.lab.kafka.jars import DEFAULT_VERSION
from quota_ops.lab.kafka.sandbox import DEMO_CLUSTER_ID
from quota_ops.store.places.object_client import open_client
from tests.broker.rights import secured
from tests.faults.machine import Machine, start_machine
from tests.objects.azure_server import AzureServer, start_azure
from tests.objects.server import S3Server, start_s3

pytest_plugins = ("tests.workers",)

# A busy machine is not a failure, and a failure must be reproducible.
settings.register_profile(
    "many", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("suite", settings.get_profile("many"), max_examples=30)
settings.register_profile("search", settings.get_profile("many"), derandomize=False)
settings.register_profile("few", settings.get_profile("many"), max_examples=10)
settings.load_profile("suite")


gc.disable()  # until the tests are collected, by each worker: a sixth of the CPU time of that


def pytest_collection_finish() -> None:
    """Exempt the imported modules and the tests from garbage collections, which would read them.

    A worker has a million objects of them; to read all takes a fifth of a second each time.
    """
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let Python free everything when it ends: DuckDB lists objects that it does not."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def _waits_for_no_disk() -> Iterator[None]:
    """Leave out fsync, which a run calls 22 times: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


@pytest.fixture(scope="session")
def out_of_reach() -> Iterator[socket.socket]:
    """Return an address that accepts connections and never responds, like behind a firewall."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        yield silent


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the marker `each_bucket` on S3 and, in `make matrix`, on Azure."""
    if any(mark.name == "each_bucket" for mark in metafunc.definition.iter_markers()):
        kinds = ["s3", pytest.param("az", marks=pytest.mark.matrix)]
        metafunc.parametrize("address", kinds, indirect=True)


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory, out_of_reach: socket.socket
) -> Iterator[RunningBroker]:
    """Start one broker without logins, shared by the whole run: leave its quotas as you found them.

    On the listener PRIVATE it advertises an address that is out of reach.
    """
    config = BrokerConfig(
        cluster_id=DEMO_CLUSTER_ID,
        listeners={"PRIVATE": "PLAINTEXT"},
        advertised={"PRIVATE": f"127.0.0.1:{out_of_reach.getsockname()[1]}"},
    )
    with start_broker(config, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def impatient_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let verify query brokers that store other values for a tenth of a second, not for ten."""
    monkeypatch.setattr("quota_ops.stages.verify.brokers.compute_deadline", lambda _rows: 0.1)


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Start three brokers, each a controller too: leave them running, and without quotas."""
    with start_machine(3, tmp_path_factory.mktemp("three")) as machine:
        yield machine


@pytest.fixture(scope="session")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Start one broker with an authorizer and a listener SASL with four users; admin may do all.

    The others have no permission until a test grants one, by `bootstrap("SASL")` as admin.
    """
    config = secured(DEFAULT_VERSION)
    with start_broker(config, tmp_path_factory.mktemp("secured-broker")) as running:
        yield running


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running S3 server, which starts with the first test that needs it."""
    with start_s3(tmp_path_factory.mktemp("s3")) as running:
        running.create_bucket("runs")
        yield running


@pytest.fixture
def login(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the credentials of this process to an identity of the server."""

    def set_credentials(identity: str) -> None:
        for name, value in s3.environment(identity).items():
            monkeypatch.setenv(name, value)
        open_client.cache_clear()

    yield set_credentials
    open_client.cache_clear()


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """A running server of Azure's blob storage, which starts with the first test that needs it."""
    with start_azure(tmp_path_factory.mktemp("azure")) as running:
        running.create_container("runs")
        yield running


@pytest.fixture
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty store, which this process may write to; the parameter is its kind."""
    kind = getattr(request, "param", "s3")
    if kind == "s3":
        request.getfixturevalue("login")("writer")
    else:
        server: AzureServer = request.getfixturevalue("azure")
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
    yield f"{kind}://runs/{uuid4().hex}"
    open_client.cache_clear()
