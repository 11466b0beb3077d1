"""A lab, and a proxy between this process and the S3 server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.store.places.object_client import open_client
from tests.lab import Lab, open_lab
from tests.objects.proxy import Faults, start_proxy
from tests.objects.server import S3Server


@pytest.fixture
def faults(s3: S3Server, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """A proxy, without faults yet, that this process uses instead of the server."""
    del address
    with start_proxy(s3.endpoint) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL", faults.address)
        open_client.cache_clear()
        yield faults


@pytest.fixture
def lab(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    """Open a lab on the shared broker, with a local run store until a test names a bucket."""
    with open_lab(broker, tmp_path) as opened:
        yield opened
