"""Credentials of the S3 server for the tests of this folder, and a prefix for each of them."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from quota_ops.store.object_client import open_client
from tests.objects.proxy import Faults, start_proxy
from tests.objects.server import S3Server


@pytest.fixture
def login(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the credentials of this process to an identity of the server."""

    def set_credentials(identity: str) -> None:
        for name, value in s3.environment(identity).items():
            monkeypatch.setenv(name, value)
        open_client.cache_clear()

    yield set_credentials
    open_client.cache_clear()


@pytest.fixture
def address(login: Callable[[str], None]) -> str:
    """The address of an empty store, which this process may write to."""
    login("writer")
    return f"s3://runs/{uuid4().hex}"


@pytest.fixture
def faults(s3: S3Server, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """A proxy, without faults yet, that this process uses instead of the server."""
    del address
    with start_proxy(s3.endpoint) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL", faults.address)
        open_client.cache_clear()
        yield faults
